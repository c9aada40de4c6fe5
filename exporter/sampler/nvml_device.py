"""One whole GPU as NVML shows it."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

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
from exporter.sampler.nvml_fields import PCIE_IN_BYTES, PCIE_OUT_BYTES, field_values
from exporter.sampler.nvml_gpm import Gpm
from exporter.sampler.nvml_health import read_health
from exporter.sampler.nvml_library import Library
from exporter.sampler.nvml_link import read_link
from exporter.sampler.nvml_memory import read_memory
from exporter.sampler.nvml_nvlink import read_nvlink
from exporter.sampler.nvml_parts import Parts, within
from exporter.sampler.nvml_processes import read_processes

_COUNTER_BITS = 32
"""The driver's control call fills 32-bit counters, whatever type the field says it is."""
_WIDE_COUNTER_BITS = 64
_OUT_COUNTER, _IN_COUNTER = 0, 1
_KILOBYTE = 1000.0
_LARGEST_KILOBYTES = 0xFFFFFFFE
_ACTIVITY_SECONDS = 5.0
_WHOLE = 100
_UTILISATION = Struct("@II")
"""nvmlUtilization_t: gpu, memory (nvml.h)."""
_NO_UTILISATION = _UTILISATION.pack(0, 0)


class NvmlDevice:
    """One GPU. Its handle is kept; one thread at a time calls its methods, another may ``close`` it."""

    __slots__ = (
        "_clock",
        "_counter_bits",
        "_gpm",
        "_has_gpm",
        "_parts",
        "_total_bytes",
        "identity",
    )

    def __init__(
        self, library: Library, handle: object, identity: GpuIdentity, clock: Callable[[], float]
    ) -> None:
        self.identity = identity
        self._parts = Parts(library, handle)
        self._gpm = Gpm(library, handle, clock)
        self._has_gpm: bool | None = None
        self._clock = clock
        self._counter_bits = _COUNTER_BITS
        self._total_bytes: float | None = None

    @property
    def handle(self) -> object:
        """The library's."""
        return self._parts.handle

    def memory(self) -> GpuMemory:
        """Memory now."""
        memory = read_memory(self._parts)
        self._total_bytes = memory.total_bytes
        return memory

    def utilisation(self) -> GpuUtilisation:
        """How busy it was; from profiling, what the newest ``byte_rates`` brought along."""
        activity = self._gpm.activity
        if activity is None or self._clock() - activity.at > _ACTIVITY_SECONDS:
            return self._busy_alone()
        busy = self._parts.known("busy", self._busy)
        # profiling that is stuck says 0 for ever, as seen after an XID 31 (NVIDIA/DCGM#303)
        is_stuck = activity.sm_active_ratio == 0 and busy == 1
        if is_stuck:
            return GpuUtilisation(busy)
        return GpuUtilisation(busy, activity.sm_active_ratio, activity.memory_bandwidth_ratio)

    def byte_counters(self) -> ByteCounters:
        """PCIe bytes, as they run."""
        since = self._clock()
        answers = field_values(
            self._parts.library, self._parts.handle, [PCIE_OUT_BYTES, PCIE_IN_BYTES], wraps=True
        )
        at = self._clock()
        for answer in answers:
            if answer.error is not None:
                raise answer.error
        moved_out, moved_in = (int(answer.value) for answer in answers)
        if max(moved_out, moved_in) >> _COUNTER_BITS:
            self._counter_bits = _WIDE_COUNTER_BITS
        return ByteCounters(at, moved_out, moved_in, self._counter_bits, since, answers[0].stamp)

    def byte_rates(self) -> ByteRates:
        """PCIe bytes a second since the last call."""
        try:
            return self._gpm.rates()
        except ReadError as error:
            if error.remedy == Remedy.DROP:
                self._has_gpm = False
            elif error.remedy != Remedy.SKIP:
                self._gpm.forget()
            raise
        finally:
            if self._has_gpm is None:
                self._has_gpm = True

    def byte_window(self) -> ByteRates:
        """PCIe KB/s of 1000, each direction over 20 ms of its own, the one after the other."""
        since = self._clock()
        moved_out, moved_in = (
            _KILOBYTE
            * within(
                "nvmlDeviceGetPcieThroughput",
                self._parts.call("nvmlDeviceGetPcieThroughput", counter),
                0,
                _LARGEST_KILOBYTES,
            )
            for counter in (_OUT_COUNTER, _IN_COUNTER)
        )
        return ByteRates(since, self._clock(), moved_out, moved_in, "window")

    def link(self) -> PcieLink:
        """The PCIe link."""
        return read_link(self._parts)

    def nvlink(self) -> NvLink:
        """All NVLinks together."""
        return read_nvlink(self._parts)

    def health(self) -> GpuHealth:
        """Temperature, power, errors."""
        return read_health(self._parts)

    def processes(self) -> tuple[GpuProcess, ...]:
        """Who computes on it."""
        return read_processes(self._parts, self._total_bytes)

    def left_out(self) -> tuple[tuple[str, str, float], ...]:
        """Parts that failed without failing their group, so far."""
        return tuple(
            (part, reason, float(count)) for (part, reason), count in self._parts.left_out.copy().items()
        )

    def close(self) -> None:
        """Free what has to be freed before the library shuts down. Raises nothing."""
        self._gpm.free()

    def _busy_alone(self) -> GpuUtilisation:
        try:
            return GpuUtilisation(self._busy())
        except ReadError as error:
            if error.remedy != Remedy.DROP or self._has_gpm is False:
                raise
            # a partitioned GPU has profiling and nothing else: there may be some at the next read
            return GpuUtilisation()

    def _busy(self) -> float:
        """NVML's other number is of time too, not of bandwidth, and not asked for."""
        told = self._parts.library.filled(
            "nvmlDeviceGetUtilizationRates", self._parts.handle, _NO_UTILISATION
        )
        percent, _ = _UTILISATION.unpack(told)
        return within("utilization", percent, 0, _WHOLE) / _WHOLE
