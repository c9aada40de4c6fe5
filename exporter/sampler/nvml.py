"""NVIDIA's GPUs through NVML, by the real binding: everything is probed, nothing assumed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from exporter.gpu_sample import GpuIdentity
from exporter.sampler.backend import Device, Event, ReadError, Remedy
from exporter.sampler.nvml_device import NvmlDevice
from exporter.sampler.nvml_errors import opening_error
from exporter.sampler.nvml_events import XidEvents
from exporter.sampler.nvml_library import Library, loaded
from exporter.sampler.nvml_mig import NvmlInstance, instances
from exporter.sampler.reasons import Reason, advised


class NvmlBackend:
    """The library. ``clock`` is CLOCK_MONOTONIC, by which readings are timed.

    One thread opens, asks for devices and closes; another waits for events.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._library: Library | None = None
        self._events: XidEvents | None = None
        self._version = ""
        self._expected: int | None = None
        self._whole: dict[str, NvmlDevice] = {}
        self._parts: dict[str, NvmlInstance] = {}
        self._unopened: list[tuple[int, ReadError]] = []

    def open(self) -> None:
        """Load and initialise the library. Raises ReadError, which says what to do."""
        self.close()
        try:
            library = loaded()
            library.call("nvmlInit")
            self._library = library
            library.driver = library.call("nvmlSystemGetDriverVersion")
            self._version = f"driver {library.driver}, NVML {library.call('nvmlSystemGetNVMLVersion')}"
            self._find(library)
            self._events = XidEvents(library, self._handles())
        except ReadError as error:
            self.close()
            raise opening_error(error) from error

    def close(self) -> None:
        """Let go of it. Raises nothing."""
        library, self._library = self._library, None
        events, self._events = self._events, None
        whole, self._whole, self._parts, self._unopened = self._whole, {}, {}, []
        self._version, self._expected = "", None
        if library is None:
            return
        for device in whole.values():
            device.close()
        if events is not None:
            events.close()
        with suppress(ReadError):  # it may be gone already
            library.call("nvmlShutdown")

    @property
    def version(self) -> str:
        """Which driver and library answer; empty before ``open``."""
        return self._version

    @property
    def expected(self) -> int | None:
        """How many GPUs the driver counted last, those that can't be opened included."""
        return self._expected

    def devices(self) -> tuple[Device, ...]:
        """All GPUs and the MIG instances that they are cut into, as of now. Raises ReadError.

        What was opened before stays the same object; a GPU stays when it is gone, a MIG instance doesn't.
        """
        if self._library is None or self._events is None:
            return ()
        self._find(self._library)
        self._events.watch(self._handles())
        return (*self._whole.values(), *self._parts.values())

    def unopened(self) -> tuple[tuple[int, ReadError], ...]:
        """Those that were counted last and can't be opened, or whose UUID is another's; an instance by its GPU."""
        return tuple(self._unopened)

    def next_event(self, seconds: float) -> Event | None:
        """Wait for an XID of any GPU, at most ``seconds``. Raises ReadError, also before ``open``."""
        events = self._events
        if events is None:
            raise ReadError(Reason.DRIVER_LOST, Remedy.REOPEN, "events: the library isn't open")
        return events.next(seconds)

    def _handles(self) -> list[tuple[object, str]]:
        return [(device.handle, uuid) for uuid, device in self._whole.items()]

    def _find(self, library: Library) -> None:
        """Look for GPUs in PCI order, as the driver counts them, and for the instances of each."""
        count = int(library.call("nvmlDeviceGetCount"))
        self._unopened = []
        seen: dict[str, int] = {}
        parts: dict[str, NvmlInstance] = {}
        for index in range(count):
            try:
                device = self._opened(library, index, seen)
            except ReadError as error:
                if error.remedy == Remedy.REOPEN:
                    raise
                if not self._is_known(index) or error.remedy == Remedy.DROP:
                    self._unopened.append((index, advised(error)))
                continue
            try:
                parts.update(self._instances(library, device, seen))
            except ReadError as error:
                if error.remedy == Remedy.REOPEN:
                    raise
                self._unopened.append((index, error))
        self._expected, self._parts = count, parts

    def _instances(
        self, library: Library, device: NvmlDevice, seen: dict[str, int]
    ) -> dict[str, NvmlInstance]:
        """Those of a GPU; those that were there, where they can't be looked for just now. Raises ReadError."""
        whole = device.identity
        before = {uuid: part for uuid, part in self._parts.items() if part.identity.parent_uuid == whole.uuid}
        try:
            found = instances(library, device.handle, whole)
        except ReadError as error:
            if error.remedy == Remedy.DROP:
                text = f"its MIG instances: {error}; in a container they take NVIDIA_MIG_MONITOR_DEVICES=all"
                raise ReadError(error.reason, error.remedy, text) from error
            if error.remedy == Remedy.REOPEN:
                raise
            return before
        parts = {}
        for part in found:
            _claim(part.identity, seen)
            known = parts[part.identity.uuid] = before.get(part.identity.uuid, part)
            known.moved_to(part)
        return parts

    def _opened(self, library: Library, index: int, seen: dict[str, int]) -> NvmlDevice:
        handle = library.call("nvmlDeviceGetHandleByIndex", index)
        uuid = library.call("nvmlDeviceGetUUID", handle)
        _claim(GpuIdentity(uuid, index), seen)
        if uuid not in self._whole:
            identity = GpuIdentity(
                uuid=uuid,
                device_index=index,
                name=_text(library, "nvmlDeviceGetName", handle),
                pci_bus_id=_bus_id(library, handle),
                driver=library.driver,
            )
            self._whole[uuid] = NvmlDevice(library, handle, identity, self._clock)
        return self._whole[uuid]

    def _is_known(self, index: int) -> bool:
        """Whether it was opened before, so that its own reads tell what it suffers from."""
        return any(device.identity.device_index == index for device in self._whole.values())


def _claim(identity: GpuIdentity, seen: dict[str, int]) -> None:
    """Two of one UUID would be two series of one name: the first has it."""
    index = identity.device_index or 0
    if identity.uuid in seen:
        text = f"GPU {index} has the UUID of GPU {seen[identity.uuid]}: {identity.uuid}"
        raise ReadError("duplicate_uuid", Remedy.DROP, text)
    seen[identity.uuid] = index


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
