"""What goes over a GPU's NVLinks: collectives between GPUs, and copies from one to another."""

from __future__ import annotations

from typing import NamedTuple

from exporter.derive.flow import RATE_SECONDS, Flow, Reading
from exporter.derive.phenomenon import EngineFacts, Phenomenon, where_new
from exporter.gpu_sample import GpuSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

_INPUTS = (
    "in_bytes_total",
    "out_bytes_total",
    "in_bytes_per_second",
    "out_bytes_per_second",
    "bytes_per_second",
)

NVLINK_BYTES = Signal(
    "nvlink_bytes_total",
    Kind.COUNTER,
    Scope.GPU,
    "Bytes over all NVLinks of the GPU, towards it (in) and away from it (out), or together (both) from a source that "
    "can't tell them apart.",
    Confidence.MEASURED,
    "rises of the GPU's counters, summed from 0; where the source only knows rates, rate x time",
    _INPUTS,
    labels=("direction",),
)
NVLINK_RATE = Signal(
    "nvlink_bytes_per_second",
    Kind.GAUGE,
    Scope.GPU,
    "Bytes a second over all NVLinks of the GPU over the trailing 10 s.",
    Confidence.MEASURED,
    "bytes over time",
    _INPUTS,
    labels=("direction",),
    window_seconds=RATE_SECONDS,
    peak=True,
)
NVLINK_LINKS = Signal(
    "nvlink_links",
    Kind.GAUGE,
    Scope.GPU,
    "NVLinks of the GPU, by state. One that is inactive on a GPU whose neighbours have all of theirs is broken.",
    Confidence.MEASURED,
    "the driver's state of each link",
    ("links_active", "links_inactive"),
    labels=("state",),
)


class NvLinkState(NamedTuple):
    """Each direction of one GPU, and both together for a source that can't tell them apart."""

    into: Flow = Flow()
    out: Flow = Flow()
    both: Flow = Flow()


def _derive(
    window: Window[GpuSample], _facts: EngineFacts, state: NvLinkState
) -> tuple[NvLinkState, list[Point]]:
    now, restarted = window.newest, window.restarted()
    nvlink = now.nvlink
    if nvlink is None:
        return NvLinkState(*(flow.cut() for flow in state)) if restarted else state, []
    at, source = now.at if nvlink.read_at is None else nvlink.read_at, nvlink.source
    readings = (
        Reading(at, source, nvlink.in_bytes_total, nvlink.in_bytes_per_second),
        Reading(at, source, nvlink.out_bytes_total, nvlink.out_bytes_per_second),
        Reading(at, source, None, nvlink.bytes_per_second),
    )
    into, out, both = (
        flow.after(reading, restarted=restarted) for flow, reading in zip(state, readings, strict=True)
    )
    state = NvLinkState(into, out, both)
    points = [
        Point(NVLINK_LINKS, (name,), float(links))
        for name, links in (("active", nvlink.links_active), ("inactive", nvlink.links_inactive))
        if links is not None
    ]
    for labels, flow in ((("in",), into), (("out",), out), (("both",), both)):
        if not flow.told_at(at):
            continue
        points.append(Point(NVLINK_BYTES, labels, flow.total))
        for rate, is_peak in ((flow.per_second, False), (flow.peak, True)):
            if rate is not None:
                points.append(Point(NVLINK_RATE, labels, rate, is_peak))
    return state, points


def _looks_at(window: Window[GpuSample]) -> tuple[object, ...] | None:
    """What is told again until the links are read the next time; not where each sample is a reading of its own."""
    nvlink = window.newest.nvlink
    if window.restarted() or (nvlink is not None and nvlink.read_at is None):
        return None
    return (nvlink,)


NVLINK = where_new(
    Phenomenon("nvlink", (NVLINK_BYTES, NVLINK_RATE, NVLINK_LINKS), _derive, NvLinkState()), _looks_at
)
