"""How busy a GPU is."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.derive.phenomenon import EngineFacts, stateless, where_new
from exporter.gpu_sample import GpuSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

GPU_BUSY = Signal(
    "gpu_busy_ratio",
    Kind.GAUGE,
    Scope.GPU,
    "Share of time in which at least one kernel ran. One that only waits for another GPU counts too.",
    Confidence.MEASURED,
    "the driver's utilisation over its last sample period, 1/6 to 1 s",
    ("busy_ratio",),
)
GPU_SM_ACTIVE = Signal(
    "gpu_sm_active_ratio",
    Kind.GAUGE,
    Scope.GPU,
    "Share of the streaming multiprocessors (SMs) that had work, over all of them and over time.",
    Confidence.MEASURED,
    "profiling counters of the GPU",
    ("sm_active_ratio",),
)
GPU_MEMORY_BANDWIDTH = Signal(
    "gpu_memory_bandwidth_ratio",
    Kind.GAUGE,
    Scope.GPU,
    "Share of the device memory's bandwidth that was used; decoding is bound by it.",
    Confidence.MEASURED,
    "profiling counters of the GPU",
    ("memory_bandwidth_ratio",),
)


def _derive(window: Window[GpuSample], _facts: EngineFacts) -> Iterator[Point]:
    load = window.newest.utilisation
    if load is None:
        return
    for signal, value in (
        (GPU_BUSY, load.busy_ratio),
        (GPU_SM_ACTIVE, load.sm_active_ratio),
        (GPU_MEMORY_BANDWIDTH, load.memory_bandwidth_ratio),
    ):
        # a share above 1 is a driver that speaks of something else
        if value is not None and 0.0 <= value <= 1.0:
            yield Point(signal, (), value)


LOAD = where_new(
    stateless("gpu_load", (GPU_BUSY, GPU_SM_ACTIVE, GPU_MEMORY_BANDWIDTH), _derive),
    lambda window: (window.newest.utilisation,),
)
