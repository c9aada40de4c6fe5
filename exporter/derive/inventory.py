"""GPUs: which there are, whether they can be read, and which engine runs on which."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.derive.phenomenon import EngineFacts, stateless, where_new
from exporter.gpu_sample import GpuSample
from exporter.join import Join
from exporter.sampler.reasons import Reason
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

GPU_UP = Signal(
    "gpu_up",
    Kind.GAUGE,
    Scope.GPU,
    "1 while the GPU can be read, 0 for one that was there and can't be read any more, or that the driver counts and "
    "can't open: lost, or its driver ill. One that could not be opened yet is called unopened-<index>.",
    Confidence.MEASURED,
    "the last read of the GPU",
    ("up",),
    is_state=True,
)
GPU_INFO = Signal(
    "gpu_info",
    Kind.GAUGE,
    Scope.GPU,
    "1, with what a GPU is: its index in PCI order (not CUDA's), its name, where it sits, its driver, and the parent "
    "of a MIG instance.",
    Confidence.MEASURED,
    "NVML, or the labels of dcgm-exporter",
    ("identity",),
    labels=("index", "name", "pci_bus_id", "driver", "parent_uuid"),
)
GPU_DOWN_INFO = Signal(
    "gpu_down_info",
    Kind.GAUGE,
    Scope.GPU,
    "1 while a GPU can't be read, with why: gpu_lost, gpu_ill, hung (a call of the driver doesn't come back), stale "
    "(its numbers stand still), gone (nobody lists it any more) or what else its reader says (docs/gpus.md).",
    Confidence.MEASURED,
    "the last read of the GPU",
    ("up", "down_because"),
    labels=("reason",),
)
MERELY_UNREAD = (Reason.HUNG, Reason.STALE)
"""Reasons of ``GPU_DOWN_INFO`` that speak of the reading: the GPU itself may well be at work."""
GPU_READ_ERRORS = Signal(
    "gpu_read_errors_total",
    Kind.COUNTER,
    Scope.GPU,
    "Reads of a GPU that failed, by what was read and why. The signals of that group are absent meanwhile.",
    Confidence.MEASURED,
    "counted by the reader",
    ("errors_total",),
    labels=("group", "reason"),
)
ENGINE_GPU_INFO = Signal(
    "engine_gpu_info",
    Kind.GAUGE,
    Scope.ENGINE,
    "1 for each GPU that an engine's signals are joined with: those that settings name, else all of the machine.",
    Confidence.MEASURED,
    "the settings of the engine",
    ("identity",),
    labels=("uuid",),
)


def _looks_at(window: Window[GpuSample]) -> tuple[object, ...]:
    now = window.newest
    return (now.up, now.down_because, now.identity, now.errors_total)


def _inventory(window: Window[GpuSample], _facts: EngineFacts) -> Iterator[Point]:
    now = window.newest
    yield Point(GPU_UP, (), float(now.up))
    if not now.up and now.down_because:
        yield Point(GPU_DOWN_INFO, (now.down_because,), 1.0)
    which = now.identity
    index = "" if which.device_index is None else str(which.device_index)
    yield Point(GPU_INFO, (index, which.name, which.pci_bus_id, which.driver, which.parent_uuid), 1.0)
    for group, reason, count in now.errors_total:
        yield Point(GPU_READ_ERRORS, (group, reason), count)


def _join(join: Join, _facts: EngineFacts) -> Iterator[Point]:
    for window in join.gpus:
        yield Point(ENGINE_GPU_INFO, (window.newest.identity.uuid,), 1.0)


INVENTORY = where_new(
    stateless("gpu_inventory", (GPU_UP, GPU_DOWN_INFO, GPU_INFO, GPU_READ_ERRORS), _inventory), _looks_at
)
JOIN = stateless("engine_gpus", (ENGINE_GPU_INFO,), _join)
