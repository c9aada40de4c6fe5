"""The sampler's backend on the fake library, in this process, through the real binding."""

from __future__ import annotations

import ctypes
import importlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drill.fake_nvml import DRIVER_590, VARIABLE, Control, Driver, Profile, build
from exporter.sampler.backend import Device
from exporter.sampler.nvml import NvmlBackend
from exporter.sampler.nvml_device import NvmlDevice
from tests.drill.fake_nvml.conftest import need_parts


@dataclass(frozen=True)
class Machine:
    """GPUs whose time stands still but for ``control.advance``, and a backend that runs by that time."""

    control: Control
    backend: NvmlBackend = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "backend", NvmlBackend(clock=self.clock))

    def clock(self) -> float:
        return self.control.board.clock_us / 1e6

    def opened(self) -> tuple[Device, ...]:
        self.backend.open()
        return self.backend.devices()

    def gpu(self, index: int = 0) -> NvmlDevice:
        """The one GPU of this index; the library is opened where it isn't."""
        device = (self.backend.devices() or self.opened())[index]
        assert isinstance(device, NvmlDevice)
        return device


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
def machine(
    built: Callable[[tuple[str, ...]], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Make]:
    """Makes a machine with these GPUs. Each has a copy of the library, which maps its own control block."""
    pynvml = importlib.import_module("pynvml")
    with ExitStack() as stack:

        def make(*profiles: Profile, driver: Driver = DRIVER_590, hidden: tuple[str, ...] = ()) -> Machine:
            block = tmp_path / "control"
            monkeypatch.setenv(VARIABLE, str(block))
            control = stack.enter_context(Control(block, profiles, driver, own_clock=True))
            library = shutil.copy(built((*driver.hidden, *hidden)), tmp_path / "libnvidia-ml-copy.so.1")
            monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(library)))
            monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
            made = Machine(control)
            stack.callback(made.backend.close)
            return made

        yield make
