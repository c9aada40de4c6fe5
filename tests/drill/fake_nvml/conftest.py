"""Processes that call the fake library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from drill.fake_nvml import DRIVER_590, Control, Driver, Profile
from tests.drill.fake_nvml.calling import Caller
from tests.support.fake_library import Without

Machine = Callable[..., tuple[Control, Caller]]


@pytest.fixture
def machine(fake_library: Without, tmp_path: Path) -> Iterator[Machine]:
    """Makes a machine with these GPUs, time standing still, and a process on it that has initialised."""
    with ExitStack() as stack:

        def make(
            *profiles: Profile, driver: Driver = DRIVER_590, own_clock: bool = True, init: bool = True
        ) -> tuple[Control, Caller]:
            control = stack.enter_context(
                Control(tmp_path / "control", profiles, driver, own_clock=own_clock)
            )
            call = stack.enter_context(Caller(control, fake_library(*driver.hidden)))
            if init:
                call("nvmlInit()")
            return control, call

        yield make
