"""What goes over a GPU's PCIe link, and what the link can carry.

``in`` is towards the GPU (what NVML calls RX), ``out`` away from it. The counters take in everything on
the slot: swapped blocks, the loading of a model, activations, and traffic between GPUs without NVLink.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from exporter.derive.flow import RATE_SECONDS, Flow, Reading
from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.gpu_sample import GpuSample, PcieLink, PcieTraffic
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Total, Window

MOST_OF_LINK = 1.1
"""Readers let nothing pass above this share of what the link carries; reads that fall badly make a bit over 1."""
DOWNGRADED_SECONDS = 30.0
"""The link is read every 5 to 10 s: what it was at before traffic began is forgotten by then."""
TRAFFIC_OF_LINK = 0.01
"""A link that carries less than this in both directions may rest at a lower generation: cards at a desk idle at 1."""

_TOTALS = ("out_bytes_total", "in_bytes_total", "out_bytes_per_second", "in_bytes_per_second")
_IN, _OUT = ("in",), ("out",)
_LINK = ("generation", "width", "max_generation", "max_width")

PCIE_BYTES = Signal(
    "pcie_bytes_total",
    Kind.COUNTER,
    Scope.GPU,
    "Bytes over PCIe towards the GPU (in) and away from it (out), packet headers included: 8 to 10 % more than what "
    "was copied. Bytes of ambiguous intervals are missing in it.",
    Confidence.MEASURED,
    "rises of the reader's 64-bit totals, summed from 0; where the source only knows rates, rate x time",
    _TOTALS,
    labels=("direction",),
)
PCIE_RATE = Signal(
    "pcie_bytes_per_second",
    Kind.GAUGE,
    Scope.GPU,
    "Bytes a second over PCIe over the trailing 10 s, packet headers included. Ambiguous intervals are left out; "
    "absent where they are more than half.",
    Confidence.MEASURED,
    "bytes over time",
    (*_TOTALS, "ambiguous_intervals_total"),
    labels=("direction",),
    window_seconds=RATE_SECONDS,
    peak=True,
)
PCIE_LINK = Signal(
    "pcie_link_bytes_per_second",
    Kind.GAUGE,
    Scope.GPU,
    "What the PCIe link can carry in each direction, at the most that GPU and slot can do: also while it is "
    "downgraded.",
    Confidence.MEASURED,
    "lanes x rate of a lane after encoding, at the larger of the present and the possible generation and width",
    _LINK,
    source="PCI Express base specifications 1.0 to 6.0",
)
PCIE_SATURATION = Signal(
    "pcie_saturation_ratio",
    Kind.GAUGE,
    Scope.GPU,
    "Share of what the PCIe link can carry that was used over the trailing 10 s. Host copies alone reach 0.9 to 1. "
    "While pcie_link_downgraded is 1, of what it can still carry: a slow link is full sooner.",
    Confidence.MEASURED,
    "pcie_bytes_per_second / pcie_link_bytes_per_second, or while downgraded / what the lanes it runs with carry, at "
    "the generation it hasn't left for 30 s under traffic; up to 1.1 it is 1, above that it is absent",
    (*_TOTALS, *_LINK),
    labels=("direction",),
    window_seconds=RATE_SECONDS,
    peak=True,
)
PCIE_DOWNGRADED = Signal(
    "pcie_link_downgraded",
    Kind.GAUGE,
    Scope.GPU,
    "1 when the PCIe link runs with fewer lanes than GPU and slot can do, or has for 30 s run at a lower generation "
    "while it carried traffic, else 0: a link that rests at a lower generation is none. Absent where it isn't known.",
    Confidence.MEASURED,
    "width below the possible one; generation below it with at least 1 % of the link's bytes in one direction",
    (*_LINK, *_TOTALS),
    window_seconds=DOWNGRADED_SECONDS,
    is_state=True,
)
PCIE_SOURCE = Signal(
    "pcie_source_info",
    Kind.GAUGE,
    Scope.GPU,
    "1, with who counts the GPU's PCIe bytes: gpm (hardware profiling), counter (32-bit byte counters), dcgm, or "
    "window (20 ms windows, which miss most bursts).",
    Confidence.MEASURED,
    "told by the reader",
    ("source",),
    labels=("source",),
)
PCIE_AMBIGUOUS = Signal(
    "pcie_ambiguous_intervals_total",
    Kind.COUNTER,
    Scope.GPU,
    "Intervals between reads in which a 32-bit byte counter may have wrapped more than once: their bytes are not known "
    "and in no total. If it keeps rising, the sidecar comes late to read: give this machine's CPU some room.",
    Confidence.MEASURED,
    "counted by the reader: what the link can carry x time reaches 2^32",
    ("ambiguous_intervals_total",),
)
PCIE_DISAGREEMENTS = Signal(
    "pcie_disagreements_total",
    Kind.COUNTER,
    Scope.GPU,
    "Intervals in which one source of PCIe bytes said that nothing moved and another that something did; the one that "
    "moved is believed. If it keeps rising, profiling on this GPU is stuck: restart DCGM, or whatever else profiles.",
    Confidence.MEASURED,
    "counted by the reader",
    ("disagreements_total",),
    source="dcgm-exporter issue 721",
)


class PcieState(NamedTuple):
    """Both directions of one GPU, what the reader could not tell, and since when a slow link has carried traffic."""

    into: Flow = Flow()
    out: Flow = Flow()
    ambiguous: Total = Total()
    disagreements: Total = Total()
    slow_since: float | None = None


def readings(at: float, pcie: PcieTraffic) -> tuple[Reading, Reading]:
    """What ``pcie`` tells of (in, out)."""
    source, untold = pcie.source, pcie.ambiguous_intervals_total or 0.0
    return (
        Reading(at, source, pcie.in_bytes_total, pcie.in_bytes_per_second, untold),
        Reading(at, source, pcie.out_bytes_total, pcie.out_bytes_per_second, untold),
    )


def _derive(
    window: Window[GpuSample], _facts: EngineFacts, state: PcieState
) -> tuple[PcieState, list[Point]]:
    now, restarted = window.newest, window.restarted()
    if now.pcie is not None:
        read_in, read_out = readings(now.at, now.pcie)
        state = PcieState(
            state.into.after(read_in, restarted=restarted),
            state.out.after(read_out, restarted=restarted),
            state.ambiguous.fed(now.pcie.ambiguous_intervals_total, restarted=restarted),
            state.disagreements.fed(now.pcie.disagreements_total, restarted=restarted),
            state.slow_since,
        )
    else:
        into, out = (state.into.cut(), state.out.cut()) if restarted else (state.into, state.out)
        state = PcieState(into, out, state.ambiguous, state.disagreements, state.slow_since)
    link = now.link
    if link is None:
        return state, [] if now.pcie is None else _traffic(now.at, now.pcie, None, state)
    most = capacity(link)
    slow = _slow(now, link, most, state)
    since = now.at if state.slow_since is None else state.slow_since
    state = state._replace(slow_since=since if slow else None)
    stays_slow = state.slow_since is not None and now.at - state.slow_since >= DOWNGRADED_SECONDS
    points: list[Point] = []
    if now.pcie is not None:
        points += _traffic(now.at, now.pcie, capacity(left_of(link, stays_slow=stays_slow)), state)
    if most is not None:
        points.append(Point(PCIE_LINK, (), most))
    downgraded = _downgraded(link, slow, stays_slow=stays_slow)
    if downgraded is not None:
        points.append(Point(PCIE_DOWNGRADED, (), float(downgraded)))
    return state, points


def _traffic(at: float, pcie: PcieTraffic, most: float | None, state: PcieState) -> list[Point]:
    points = [Point(PCIE_SOURCE, (pcie.source,), 1.0)]
    if pcie.ambiguous_intervals_total is not None:
        points.append(Point(PCIE_AMBIGUOUS, (), state.ambiguous.value))
    if pcie.disagreements_total is not None:
        points.append(Point(PCIE_DISAGREEMENTS, (), state.disagreements.value))
    for labels, flow in ((_IN, state.into), (_OUT, state.out)):
        if not flow.told_at(at):
            continue
        points.append(Point(PCIE_BYTES, labels, flow.total))
        for rate, is_peak in ((flow.per_second, False), (flow.peak, True)):
            if rate is None:
                continue
            points.append(Point(PCIE_RATE, labels, rate, is_peak))
            if most and rate <= most * MOST_OF_LINK:
                points.append(Point(PCIE_SATURATION, labels, min(1.0, rate / most), is_peak))
    return points


@lru_cache(maxsize=256)
def capacity(link: PcieLink) -> float | None:
    """What ``link`` carries at most in one direction, in bytes a second."""
    return link.max_bytes_per_second


@lru_cache(maxsize=256)
def left_of(link: PcieLink, *, stays_slow: bool) -> PcieLink:
    """What ``link`` can still do: the lanes it has now, and its generation of now where it ``stays_slow``.

    A link that rests wakes up to a higher generation by itself, but never to more lanes.
    """
    if link.width and link.max_width and link.width < link.max_width:
        link = link._replace(max_width=link.width)
    return link._replace(max_generation=link.generation) if stays_slow else link


def _slow(now: GpuSample, link: PcieLink, most: float | None, state: PcieState) -> bool | None:
    """Whether the link carries traffic at a lower generation than it can; None where that isn't known."""
    if not link.generation or not link.max_generation:
        return None
    if link.generation >= link.max_generation:
        return False
    rates = [flow.per_second for flow in (state.into, state.out) if flow.told_at(now.at)]
    known = [rate for rate in rates if rate is not None]
    return max(known) >= TRAFFIC_OF_LINK * most if most is not None and known else None


def _downgraded(
    link: PcieLink,
    slow: bool | None,  # noqa: FBT001 -- a fact
    *,
    stays_slow: bool,
) -> bool | None:
    if not link.width or not link.max_width:
        return None
    if link.width < link.max_width:
        return True
    return None if slow is None else stays_slow


PCIE = Phenomenon(
    "pcie",
    (
        PCIE_BYTES,
        PCIE_RATE,
        PCIE_LINK,
        PCIE_SATURATION,
        PCIE_DOWNGRADED,
        PCIE_SOURCE,
        PCIE_AMBIGUOUS,
        PCIE_DISAGREEMENTS,
    ),
    _derive,
    PcieState(),
)
