"""The sampler's backend on the fake library, in this process, through the real binding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from drill.fake_nvml import DRIVER_590, Driver, Profile
from tests.exporter.sampler.machine import Machine, running
from tests.support.fake_library import Without

Make = Callable[..., Machine]


@pytest.fixture
def machine(fake_library: Without, tmp_path: Path) -> Iterator[Make]:
    """Makes a machine with these GPUs."""
    with ExitStack() as stack:

        def make(*profiles: Profile, driver: Driver = DRIVER_590, hidden: tuple[str, ...] = ()) -> Machine:
            library = fake_library(*driver.hidden, *hidden)
            return stack.enter_context(running(tmp_path, library, profiles, driver))

        yield make
