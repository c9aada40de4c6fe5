"""The sampler's backend on the fake library, in this process, through the real binding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from drill.fake_nvml import DRIVER_590, Driver, Profile, build
from tests.drill.fake_nvml.conftest import need_parts
from tests.exporter.sampler.machine import Machine, running

Make = Callable[..., Machine]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[tuple[str, ...]], Path]:
    """The fake library without some functions, built once for each set of them."""
    need_parts()
    found: dict[tuple[str, ...], Path] = {}

    def library(hidden: tuple[str, ...]) -> Path:
        if hidden not in found:
            found[hidden] = build(tmp_path_factory.mktemp("nvml"), hidden)
        return found[hidden]

    return library


@pytest.fixture
def machine(built: Callable[[tuple[str, ...]], Path], tmp_path: Path) -> Iterator[Make]:
    """Makes a machine with these GPUs."""
    with ExitStack() as stack:

        def make(*profiles: Profile, driver: Driver = DRIVER_590, hidden: tuple[str, ...] = ()) -> Machine:
            library = built((*driver.hidden, *hidden))
            return stack.enter_context(running(tmp_path, library, profiles, driver))

        yield make
