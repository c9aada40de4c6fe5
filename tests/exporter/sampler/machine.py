"""GPUs of the fake library in this process, through the real binding."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drill.fake_nvml import VARIABLE, Control, Driver, Profile
from exporter.sampler.backend import Device
from exporter.sampler.nvml import NvmlBackend
from exporter.sampler.nvml_device import NvmlDevice


@dataclass(frozen=True)
class Machine:
    """GPUs, and a backend that runs by their time: it stands still but for ``control.advance``, or is the machine's."""

    control: Control
    backend: NvmlBackend = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "backend", NvmlBackend(clock=self.clock))

    def clock(self) -> float:
        return self.control.board.clock_us / 1e6 or time.monotonic()

    def opened(self) -> tuple[Device, ...]:
        self.backend.open()
        return self.backend.devices()

    def gpu(self, index: int = 0) -> NvmlDevice:
        """The one GPU of this index; the library is opened where it isn't."""
        device = (self.backend.devices() or self.opened())[index]
        assert isinstance(device, NvmlDevice)
        return device


@contextmanager
def running(
    folder: Path, library: Path, profiles: Sequence[Profile], driver: Driver, *, own_clock: bool = True
) -> Iterator[Machine]:
    """The machine, with a copy of ``library`` in ``folder``: each copy maps its own control block."""
    pynvml = importlib.import_module("pynvml")
    block = folder / "control"
    with (
        Control(block, profiles, driver, own_clock=own_clock) as control,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(VARIABLE, str(block))
        copy = shutil.copy(library, folder / "libnvidia-ml-copy.so.1")
        patch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(copy)))
        patch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        machine = Machine(control)
        try:
            yield machine
        finally:
            machine.backend.close()
