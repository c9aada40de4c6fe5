"""NVIDIA's GPUs through NVML, by the real binding: everything is probed, nothing assumed."""

from __future__ import annotations

import time
from collections.abc import Callable

from exporter.gpu_sample import GpuIdentity
from exporter.sampler.backend import Device, Event, ReadError, Remedy
from exporter.sampler.nvml_device import NvmlDevice
from exporter.sampler.nvml_errors import opening_error
from exporter.sampler.nvml_events import XidEvents
from exporter.sampler.nvml_library import Library, loaded
from exporter.sampler.nvml_mig import NvmlInstance, instances


class NvmlBackend:
    """The library. ``clock`` is CLOCK_MONOTONIC, by which readings are timed."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._library: Library | None = None
        self._events: XidEvents | None = None
        self._version = ""
        self._expected: int | None = None
        self._whole: list[NvmlDevice] = []
        self._parts: list[NvmlInstance] = []
        self._unopened: list[tuple[int, ReadError]] = []

    def open(self) -> None:
        """Load and initialise the library, and find the GPUs. Raises ReadError, which says what to do."""
        self.close()
        try:
            library = loaded()
            library.call("nvmlInit")
            self._library = library
            library.driver = library.call("nvmlSystemGetDriverVersion")
            self._version = f"driver {library.driver}, NVML {library.call('nvmlSystemGetNVMLVersion')}"
            self._expected = int(library.call("nvmlDeviceGetCount"))
            self._find(library, self._expected)
        except ReadError as error:
            self.close()
            raise opening_error(error) from error

    def close(self) -> None:
        """Let go of it. Raises nothing."""
        library, self._library = self._library, None
        events, self._events = self._events, None
        whole, self._whole, self._parts, self._unopened = self._whole, [], [], []
        self._version, self._expected = "", None
        if library is None:
            return
        for device in whole:
            device.close()
        try:
            if events is not None:
                events.close()
            library.call("nvmlShutdown")
        except ReadError:
            pass  # it is gone already

    @property
    def version(self) -> str:
        """Which driver and library answer; empty before ``open``."""
        return self._version

    @property
    def expected(self) -> int | None:
        """How many GPUs the driver counts, those that can't be opened included."""
        return self._expected

    def devices(self) -> tuple[Device, ...]:
        """All GPUs, in PCI order, and then the MIG instances that they are cut into."""
        return (*self._whole, *self._parts)

    def unopened(self) -> tuple[tuple[int, ReadError], ...]:
        """Those that are counted and can't be opened, and those whose UUID is another's; instances by their GPU."""
        return tuple(self._unopened)

    def next_event(self, seconds: float) -> Event | None:
        """Wait for an XID of any GPU, at most ``seconds``. Raises ReadError, also before ``open``."""
        events = self._events
        if events is None:
            raise ReadError("uninitialized", Remedy.REOPEN, "events: the library isn't open")
        return events.next(seconds)

    def _find(self, library: Library, count: int) -> None:
        gpus = []
        for index in range(count):
            try:
                handle = library.call("nvmlDeviceGetHandleByIndex", index)
                identity = _identity(library, handle, index)
                _claim(identity, [gpu.identity for gpu in self._whole])
                self._whole.append(NvmlDevice(library, handle, identity, self._clock))
            except ReadError as error:
                if error.remedy == Remedy.REOPEN:
                    raise
                self._unopened.append((index, error))
                continue
            gpus.append((handle, identity.uuid))
            self._find_instances(library, handle, identity, index)
        self._events = XidEvents(library, gpus)

    def _find_instances(self, library: Library, handle: object, whole: GpuIdentity, index: int) -> None:
        try:
            for instance in instances(library, handle, whole):
                _claim(instance.identity, [part.identity for part in self._parts])
                self._parts.append(instance)
        except ReadError as error:
            if error.remedy == Remedy.REOPEN:
                raise
            self._unopened.append((index, error))


def _identity(library: Library, handle: object, index: int) -> GpuIdentity:
    """Raises ReadError where it has no UUID; the rest is for people."""
    return GpuIdentity(
        uuid=library.call("nvmlDeviceGetUUID", handle),
        device_index=index,
        name=_text(library, "nvmlDeviceGetName", handle),
        pci_bus_id=_bus_id(library, handle),
        driver=library.driver,
    )


def _claim(identity: GpuIdentity, others: list[GpuIdentity]) -> None:
    """Two of one UUID would be two series of one name: the first has it."""
    for other in others:
        if other.uuid == identity.uuid:
            text = f"GPU {identity.device_index} has the UUID of GPU {other.device_index}: {identity.uuid}"
            raise ReadError("duplicate_uuid", Remedy.DROP, text)


def _text(library: Library, name: str, handle: object) -> str:
    try:
        return str(library.call(name, handle))
    except ReadError as error:
        if error.remedy in {Remedy.REOPEN, Remedy.DEVICE_DOWN}:
            raise
        return ""


def _bus_id(library: Library, handle: object) -> str:
    try:
        told = library.call("nvmlDeviceGetPciInfo", handle).busId
    except ReadError as error:
        if error.remedy in {Remedy.REOPEN, Remedy.DEVICE_DOWN}:
            raise
        return ""
    return told.decode(errors="replace") if isinstance(told, bytes) else str(told)
