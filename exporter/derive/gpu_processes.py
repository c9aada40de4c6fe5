"""Who computes on a GPU, where settings ask for it."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.derive.phenomenon import EngineFacts, stateless, where_new
from exporter.gpu_sample import GpuSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

MOST_TOLD = 16
"""Each process is a series: of a GPU with more, the largest are told."""

GPU_PROCESSES = Signal(
    "gpu_processes",
    Kind.GAUGE,
    Scope.GPU,
    "Processes that compute on the GPU or the MIG instance. Only with gpus.processes in the settings.",
    Confidence.MEASURED,
    "the driver's list of them",
    ("processes",),
)
GPU_PROCESS_MEMORY = Signal(
    "gpu_process_memory_bytes",
    Kind.GAUGE,
    Scope.GPU,
    f"Device memory of each process on the GPU, of the {MOST_TOLD} largest: one that is no engine takes what the KV "
    "cache could have had. Only with gpus.processes; absent where the driver doesn't tell, as in containers.",
    Confidence.MEASURED,
    "the driver's list of them, with the process ids of the host",
    ("processes",),
    labels=("pid",),
)


def _derive(window: Window[GpuSample], _facts: EngineFacts) -> Iterator[Point]:
    processes = window.newest.processes
    if processes is None:
        return
    yield Point(GPU_PROCESSES, (), float(len(processes)))
    told = sorted((-each.memory_bytes, each.pid) for each in processes if each.memory_bytes is not None)
    for negative, pid in told[:MOST_TOLD]:
        yield Point(GPU_PROCESS_MEMORY, (str(pid),), -negative)


PROCESSES = where_new(
    stateless("gpu_processes", (GPU_PROCESSES, GPU_PROCESS_MEMORY), _derive),
    lambda window: (window.newest.processes,),
)
