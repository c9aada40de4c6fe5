"""GPU performance monitoring: what happened between two samples, from Hopper on.

A sample is taken at each read and compared with the one before. Rates come in MiB/s of 1024 * 1024 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref
from math import isfinite
from struct import Struct
from threading import Lock
from typing import Any, NamedTuple

from exporter.sampler.backend import ByteRates, ReadError, Remedy
from exporter.sampler.nvml_library import Library

_SM_UTIL, _DRAM_BANDWIDTH, _PCIE_OUT, _PCIE_IN = 2, 10, 20, 21
_METRICS = (_SM_UTIL, _DRAM_BANDWIDTH, _PCIE_OUT, _PCIE_IN)
_MEBIBYTE = 1024.0 * 1024.0
_METRIC = Struct("@IId3P")
"""nvmlGpmMetric_t: metricId, nvmlReturn, value, and three texts (nvml.h)."""
_VERSION = 1
_CLOSE_SECONDS = 1.0
"""How long a close waits for a read: one that hangs keeps its samples."""


class Activity(NamedTuple):
    """Shares over the time up to ``at``, 0 to 1; None where the driver can't tell."""

    at: float
    sm_active_ratio: float | None
    memory_bandwidth_ratio: float | None


class Gpm:
    """The samples of one GPU. One thread at a time reads, another may free."""

    __slots__ = (
        "_asked",
        "_clock",
        "_handle",
        "_last",
        "_library",
        "_lock",
        "_metrics",
        "_samples",
        "_told",
        "activity",
    )

    def __init__(self, library: Library, handle: object, clock: Callable[[], float]) -> None:
        self._library = library
        self._handle = handle
        self._clock = clock
        self._lock = Lock()
        self._samples: list[Any] = []  # the older one first
        self._metrics: Any = None
        self._asked: object = None
        self._told = memoryview(b"")
        self._last: tuple[float, float] | None = None
        self.activity: Activity | None = None

    def rates(self) -> ByteRates:
        """PCIe bytes a second since the last read. The first has nothing to tell. Raises ReadError."""
        with self._lock:
            self._allocate()
            last, self._last = self._last, None
            asked = self._clock()
            self._library.fill("nvmlGpmSampleGet", self._handle, self._samples[1])
            self._samples.reverse()
            now = (asked, self._clock())
            self._last = now
            if last is None:
                raise ReadError("no_data", Remedy.SKIP, "nvmlGpmSampleGet: the first sample has no other")
            return self._compared(last, now)

    def forget(self) -> None:
        """The next read is the first again: what lies between is not to be trusted."""
        self._last = None
        self.activity = None

    def free(self) -> None:
        """Give the samples back, which has to be before the library shuts down. Raises nothing."""
        if not self._lock.acquire(timeout=_CLOSE_SECONDS):
            return
        try:
            samples, self._samples, self._last = self._samples, [], None
            for sample in samples:
                self._library.call("nvmlGpmSampleFree", sample)
        except ReadError:
            pass  # the library is gone, and the samples with it
        finally:
            self._lock.release()

    def _allocate(self) -> None:
        if self._metrics is None:
            support = self._library.call("nvmlGpmQueryDeviceSupport", self._handle)
            if not support.isSupportedDevice:
                raise ReadError("not_supported", Remedy.DROP, "nvmlGpmQueryDeviceSupport: not this GPU")
            metrics = self._library.new("c_nvmlGpmMetricsGet_t")
            metrics.version, metrics.numMetrics = _VERSION, len(_METRICS)
            for place, number in enumerate(_METRICS):
                metrics.metrics[place].metricId = number
            self._metrics, self._asked = metrics, byref(metrics)
            start = type(metrics).metrics.offset
            self._told = memoryview(metrics).cast("B")[start : start + len(_METRICS) * _METRIC.size]
        while len(self._samples) < 2:  # noqa: PLR2004 - a pair
            self._samples.append(self._library.call("nvmlGpmSampleAlloc"))

    def _compared(self, last: tuple[float, float], now: tuple[float, float]) -> ByteRates:
        # after the turn the newer sample lies first
        self._metrics.sample1, self._metrics.sample2 = self._samples[1], self._samples[0]
        self._library.fill("nvmlGpmMetricsGet", self._asked)
        sms, memory, outgoing, incoming = (
            _value(code, value) for _, code, value, *_ in _METRIC.iter_unpack(self._told)
        )
        since, at = sum(last) / 2, sum(now) / 2
        self.activity = Activity(at, _ratio(sms), _ratio(memory))
        return ByteRates(
            since=since,
            at=at,
            out_bytes_per_second=_bytes(outgoing),
            in_bytes_per_second=_bytes(incoming),
            source="gpm",
            slack_seconds=(last[1] - last[0] + now[1] - now[0]) / 2,
        )


def _value(code: int, value: float) -> float | None:
    return None if code or not isfinite(value) or value < 0 else value


def _ratio(percent: float | None) -> float | None:
    return None if percent is None or percent > 100 else percent / 100  # noqa: PLR2004 - per cent


def _bytes(mebibytes: float | None) -> float | None:
    return None if mebibytes is None else mebibytes * _MEBIBYTE
