"""A maker's library of which a test holds the strings: files in a folder say what it does, while it runs.

``GPU-*`` in the folder is a GPU, ``MIG-*-of-GPU-*`` an instance of it; what stands in it is memory in use, in
bytes. ``hang-<UUID>`` holds its reads up while it is there, ``hang-open`` the opening, ``hang-look`` the look
which there are; ``fail-...`` holds REASON REMEDY and fails them; ``xid-<UUID>`` holds an XID, told of once.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from exporter.gpu_sample import (
    GpuHealth,
    GpuIdentity,
    GpuMemory,
    GpuProcess,
    GpuUtilisation,
    NvLink,
    PcieLink,
)
from exporter.sampler.backend import ByteCounters, ByteRates, Device, Event, ReadError, Remedy

FOLDER_VARIABLE = "SCRIPTED_GPUS"
NOT_SUPPORTED = ReadError("not_supported", Remedy.DROP, "not on this GPU")


class ScriptedDevice:
    def __init__(self, folder: Path, identity: GpuIdentity) -> None:
        self._folder, self._identity = folder, identity

    @property
    def identity(self) -> GpuIdentity:
        return self._identity

    def memory(self) -> GpuMemory:
        obey(self._folder, self._identity.uuid)
        return GpuMemory(80e9, float((self._folder / self._identity.uuid).read_text() or "nan"))

    def utilisation(self) -> GpuUtilisation:
        obey(self._folder, self._identity.uuid)
        return GpuUtilisation(0.5, float("nan"))

    def byte_counters(self) -> ByteCounters:
        obey(self._folder, self._identity.uuid)
        return ByteCounters(time.monotonic(), 1, 2, 32)

    def byte_rates(self) -> ByteRates:
        raise NOT_SUPPORTED

    def byte_window(self) -> ByteRates:
        raise NOT_SUPPORTED

    def link(self) -> PcieLink:
        obey(self._folder, self._identity.uuid)
        return PcieLink(5, 16, 5, 16)

    def nvlink(self) -> NvLink:
        raise NOT_SUPPORTED

    def health(self) -> GpuHealth:
        raise ZeroDivisionError

    def processes(self) -> tuple[GpuProcess, ...]:
        return (GpuProcess(os.getpid(), None),)

    def left_out(self) -> tuple[tuple[str, str, float], ...]:
        return ()


class ScriptedBackend:
    version = "scripted 1"

    def __init__(self) -> None:
        self._folder = Path(os.environ[FOLDER_VARIABLE])

    def open(self) -> None:
        obey(self._folder, "open")

    def close(self) -> None:
        (self._folder / "closed").touch()

    @property
    def expected(self) -> int | None:
        return len(self._names())

    def devices(self) -> tuple[Device, ...]:
        obey(self._folder, "look")
        whole = [
            ScriptedDevice(self._folder, GpuIdentity(name, index, "Scripted GPU"))
            for index, name in enumerate(self._names())
        ]
        parts = [
            ScriptedDevice(self._folder, GpuIdentity(file.name, parent_uuid=file.name.partition("-of-")[2]))
            for file in sorted(self._folder.glob("MIG-*"))
        ]
        return (*whole, *parts)

    def unopened(self) -> tuple[tuple[int, ReadError], ...]:
        return ()

    def next_event(self, seconds: float) -> Event | None:
        for file in self._folder.glob("xid-*"):
            xid = int(file.read_text())
            file.unlink()
            return Event(file.name.removeprefix("xid-"), xid)
        time.sleep(seconds)
        return None

    def _names(self) -> list[str]:
        return sorted(file.name for file in self._folder.glob("GPU-*"))


def obey(folder: Path, what: str) -> None:
    while (folder / f"hang-{what}").exists():
        time.sleep(0.01)
    failing = folder / f"fail-{what}"
    if failing.exists():
        reason, remedy = failing.read_text().split()
        raise ReadError(reason, remedy, f"{what} fails: as the test says")
