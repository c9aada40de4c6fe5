"""The fake library, built once a run, and processes that call it."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from drill.fake_nvml import DRIVER_470, DRIVER_590, Control, Driver, Profile, build
from tests.drill.fake_nvml.calling import Caller

Machine = Callable[..., tuple[Control, Caller]]


def need_parts() -> None:
    """Skips without gcc or the binding, loudly; in CI both must be there."""
    missing = [] if shutil.which("gcc") else ["gcc"]
    missing += [] if importlib.util.find_spec("pynvml") else ["nvidia-ml-py"]
    if missing:
        why = f"NOT TESTED: the fake NVML library needs {' and '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(why, pytrace=False)
        pytest.skip(why)


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[Driver, Path]:
    need_parts()
    return {
        driver: build(tmp_path_factory.mktemp("nvml"), driver.hidden) for driver in (DRIVER_590, DRIVER_470)
    }


@pytest.fixture
def machine(libraries: dict[Driver, Path], tmp_path: Path) -> Iterator[Machine]:
    """Makes a machine with these GPUs, time standing still, and a process on it that has initialised."""
    with ExitStack() as stack:

        def make(
            *profiles: Profile, driver: Driver = DRIVER_590, own_clock: bool = True, init: bool = True
        ) -> tuple[Control, Caller]:
            control = stack.enter_context(
                Control(tmp_path / "control", profiles, driver, own_clock=own_clock)
            )
            call = stack.enter_context(Caller(control, libraries[driver]))
            if init:
                call("nvmlInit()")
            return control, call

        yield make
