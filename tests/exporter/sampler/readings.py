"""What the backend reads of each kind of GPU under each driver, as it stands in ``tests/fixtures/nvml``.

``python -m tests.exporter.sampler.readings`` writes it anew: read the difference before you commit it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from drill.fake_nvml import DRIVER_470, DRIVER_590, PROFILES, build
from exporter.sampler.backend import Device, ReadError
from exporter.sampler.pcie_meter import PcieMeter
from tests.exporter.sampler.machine import Machine, running

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "nvml"
DRIVERS = (DRIVER_590, DRIVER_470)
GROUPS = ("memory", "utilisation", "link", "nvlink", "health", "processes", "byte_window", "byte_counters")


def busy(machine: Machine) -> None:
    """What goes on in each GPU whose reading is kept: nothing in it is 0 that could be something."""
    control = machine.control
    gpu = control.device(0)
    gpu.gpu_util, gpu.replays, gpu.temperature = 97, 3, 61
    gpu.memory_used, gpu.recovery_action = gpu.memory_total // 2, 2
    gpu.ecc[0][0][2], gpu.ecc[1][0][7] = 10, 1
    gpu.remapped[:] = [1, 2, 0, 1]
    gpu.violations_ns[0], gpu.violations_ns[7] = 1_500_000_000, 7
    gpu.nvlink_active &= ~(1 << 3)
    control.start(0, 4242, 1 << 30)
    control.start(0, 4243, (1 << 64) - 1)
    control.nvlink_traffic(0, transmit=11 << 30, receive=22 << 30)
    control.traffic(0, transmit=3e9, receive=5e9)
    for field in range(173, 184):
        control.field(0, field, field)


def reading(device: Device) -> dict[str, Any]:
    """Each group, or the reason why there is none."""
    found: dict[str, Any] = {"identity": device.identity._asdict()}
    for group in GROUPS:
        try:
            found[group] = plain(getattr(device, group)())
        except ReadError as error:
            found[group] = f"{error.reason}, {error.remedy}"
    found["left_out"] = plain(device.left_out())
    return found


def plain(value: object) -> object:
    if isinstance(value, tuple):
        fields = getattr(value, "_asdict", None)
        if fields is not None:
            return {name: plain(each) for name, each in fields().items()}
        return [plain(each) for each in value]
    return value


def said(machine: Machine) -> list[dict[str, Any]]:
    """The GPU after four seconds under load, and its instances."""
    busy(machine)
    devices = machine.opened()
    meter = PcieMeter(devices[0], window=True, clock=machine.clock)
    for _ in range(3):
        machine.control.advance(1)
        try:
            meter.poll()
        except ReadError as error:
            assert error.reason == "not_supported"  # noqa: PT017 - what is wrong with it is read below
    traffic = meter.traffic()
    found = [reading(device) for device in devices]
    found[0]["traffic"] = None if traffic is None else traffic._asdict()
    return found


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    for driver in DRIVERS:
        told = {}
        with tempfile.TemporaryDirectory() as folder:
            library = build(Path(folder) / "library", driver.hidden)
            for number, profile in enumerate(PROFILES):
                place = Path(folder) / str(number)
                place.mkdir()
                with running(place, library, [profile], driver) as machine:
                    name = f"{profile.name}, partitioned" if profile.mig else profile.name
                    told[name] = said(machine)
        text = json.dumps(told, indent=1)
        (FOLDER / f"driver-{driver.version}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
