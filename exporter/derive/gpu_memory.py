"""Device memory of a GPU or of a MIG instance."""

from __future__ import annotations

import math
from collections.abc import Iterator

from exporter.derive.phenomenon import EngineFacts, stateless, where_new
from exporter.gpu_sample import GpuSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

GPU_MEMORY_USED = Signal(
    "gpu_memory_used_bytes",
    Kind.GAUGE,
    Scope.GPU,
    "Device memory in use. Engines take their KV pool at the start: how full that is, kv_usage_ratio tells.",
    Confidence.MEASURED,
    "the driver's figure, without its own reserve where it tells that apart",
    ("used_bytes",),
)
GPU_MEMORY_RESERVED = Signal(
    "gpu_memory_reserved_bytes",
    Kind.GAUGE,
    Scope.GPU,
    "Device memory that the driver keeps for itself; absent where it is part of what is used.",
    Confidence.MEASURED,
    "the driver's figure",
    ("reserved_bytes",),
)
GPU_MEMORY_TOTAL = Signal(
    "gpu_memory_total_bytes",
    Kind.GAUGE,
    Scope.GPU,
    "Device memory of the GPU or of the MIG instance.",
    Confidence.MEASURED,
    "the driver's figure",
    ("total_bytes",),
)


def _derive(window: Window[GpuSample], _facts: EngineFacts) -> Iterator[Point]:
    memory = window.newest.memory
    if memory is None:
        return
    for signal, value in (
        (GPU_MEMORY_USED, memory.used_bytes),
        (GPU_MEMORY_RESERVED, memory.reserved_bytes),
        (GPU_MEMORY_TOTAL, memory.total_bytes),
    ):
        if value is not None and 0.0 <= value < math.inf:
            yield Point(signal, (), value)


MEMORY = where_new(
    stateless("gpu_memory", (GPU_MEMORY_USED, GPU_MEMORY_RESERVED, GPU_MEMORY_TOTAL), _derive),
    lambda window: (window.newest.memory,),
)
