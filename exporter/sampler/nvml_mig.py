"""MIG: the parts that a GPU is cut into, each with memory of its own."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.gpu_sample import (
    GpuHealth,
    GpuIdentity,
    GpuMemory,
    GpuProcess,
    GpuUtilisation,
    NvLink,
    PcieLink,
)
from exporter.sampler.backend import ByteCounters, ByteRates, ReadError, Remedy
from exporter.sampler.nvml_errors import INVALID_ARGUMENT, NOT_FOUND, error_of_code
from exporter.sampler.nvml_library import Library
from exporter.sampler.nvml_memory import read_memory
from exporter.sampler.nvml_parts import Parts
from exporter.sampler.nvml_processes import read_processes

_GONE = {error_of_code("", code).reason for code in (INVALID_ARGUMENT, NOT_FOUND)}


class NvmlInstance:
    """A GPU instance: its memory and its processes. The rest is its parent's (NVIDIA/DCGM#88)."""

    __slots__ = ("_parts", "identity")

    def __init__(self, library: Library, handle: object, identity: GpuIdentity) -> None:
        self.identity = identity
        self._parts = Parts(library, handle)

    def memory(self) -> GpuMemory:
        """Memory now."""
        try:
            return read_memory(self._parts)
        except ReadError as error:
            if error.reason not in _GONE:
                raise
            # a new partitioning leaves the old handles behind
            raise ReadError("gone", Remedy.DEVICE_DOWN, f"{error}: the GPU was partitioned anew") from error

    def moved_to(self, newer: NvmlInstance) -> None:
        """Go on as ``newer``, of the same UUID: instances made anew have new handles."""
        self._parts, self.identity = newer._parts, newer.identity

    def utilisation(self) -> GpuUtilisation:
        """Not of a part."""
        raise _not_of_a_part("utilisation")

    def byte_counters(self) -> ByteCounters:
        """Not of a part."""
        raise _not_of_a_part("PCIe")

    def byte_rates(self) -> ByteRates:
        """Not of a part."""
        raise _not_of_a_part("PCIe")

    def byte_window(self) -> ByteRates:
        """Not of a part."""
        raise _not_of_a_part("PCIe")

    def link(self) -> PcieLink:
        """Not of a part."""
        raise _not_of_a_part("PCIe")

    def nvlink(self) -> NvLink:
        """Not of a part."""
        raise _not_of_a_part("NVLink")

    def health(self) -> GpuHealth:
        """Not of a part."""
        raise _not_of_a_part("health")

    def processes(self) -> tuple[GpuProcess, ...]:
        """Who computes on it."""
        return read_processes(self._parts, None)

    def left_out(self) -> tuple[tuple[str, str, float], ...]:
        """Parts that failed without failing their group, so far."""
        return tuple(
            (part, reason, float(count)) for (part, reason), count in self._parts.left_out.copy().items()
        )

    def close(self) -> None:
        """Nothing to free."""


def instances(library: Library, handle: object, whole: GpuIdentity) -> list[NvmlInstance]:
    """One for each GPU instance of ``whole``: compute instances of one share its memory.

    Raises ReadError, with DROP where they may not be looked at.
    """
    found: dict[int, NvmlInstance] = {}
    for part, uuid in _partition(library, handle):
        gpu_instance = int(library.call("nvmlDeviceGetGpuInstanceId", part))
        identity = whole._replace(uuid=uuid, parent_uuid=whole.uuid, gpu_instance=gpu_instance)
        found.setdefault(gpu_instance, NvmlInstance(library, part, identity))
    return list(found.values())


def _partition(library: Library, handle: object) -> Iterator[tuple[object, str]]:
    """Each MIG device, by index; indices have gaps."""
    if not _is_partitioned(library, handle):
        return
    for index in range(library.call("nvmlDeviceGetMaxMigDeviceCount", handle)):
        try:
            part = library.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
            uuid = library.call("nvmlDeviceGetUUID", part)
        except ReadError as error:
            if error.reason in _GONE:
                continue
            raise
        yield part, uuid


def _is_partitioned(library: Library, handle: object) -> bool:
    try:
        current, _ = library.call("nvmlDeviceGetMigMode", handle)
    except ReadError as error:
        if error.remedy == Remedy.DROP and error.reason != "no_permission":
            return False
        raise
    return bool(current)


def _not_of_a_part(what: str) -> ReadError:
    return ReadError("not_supported", Remedy.DROP, f"{what}: has no meaning for a part of a GPU")
