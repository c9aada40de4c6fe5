"""How much of what goes over PCIe an engine's swap explains, and what is left.

An engine's swap is compared with what its GPUs carried over the same minute: from one read of the engine
to another, the GPUs' totals taken at just these instants (``instants``). What remains is how evenly bytes
fall within the second around each end, and how long the engine took to answer: with reads of at most 1 s,
in the worst case 2 s of 60.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.derive.stalls import Standstill
from exporter.derive.swap import tier_enabled
from exporter.gpu_sample import GpuSample
from exporter.instants import Span, span
from exporter.join import Join
from exporter.pcie import HEADER_FACTOR
from exporter.sample import EngineSample, RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import LONGEST_GAP_SECONDS, START_SLACK_SECONDS, Window

SHARE_SECONDS = 60.0
"""Long enough that a second at either end weighs little; ends of bursts fall where they may."""
LONGEST_READ_SECONDS = 1.0
"""An engine that took longer to answer told of some later time than that of the request."""
LATEST_START_SECONDS = 66.0
SHARE_SLACK = 1.1
"""Headers are 8 to 10 % where 9 are taken, the ends up to 3 %, and transfers are told when they are done."""
JUDGED_FROM_BYTES = 1e6 * SHARE_SECONDS
"""Below a megabyte a second the GPUs' own housekeeping is as large as what is judged."""
IMPOSSIBLE_SECONDS = 90.0
"""A burst that only fell badly stays in the window for a minute."""
MOST_HELD_SECONDS = 5.0
"""A source of rates that says the same for longer has not looked: over a minute it would be too late."""

_INPUTS = (
    "swap_in_bytes_total",
    "swap_out_bytes_total",
    "out_bytes_total",
    "in_bytes_total",
    "out_bytes_per_second",
    "in_bytes_per_second",
    "ambiguous_intervals_total",
)
SWAP_SHARE = Signal(
    "pcie_swap_share_ratio",
    Kind.GAUGE,
    Scope.ENGINE,
    "Share of the bytes over PCIe on all GPUs of the engine, over the trailing minute, that its own swap or offload "
    "explains. 0 where the engine can't swap. Needs the engine's own count of swapped bytes, and no setting. Absent in "
    "the first minute, where its swap is only estimated (vLLM V0), where one of its GPUs is stale, down or not there "
    "(without gpus in settings, one of this machine), or some of the GPUs' bytes are not known; and where more was "
    "swapped than went over PCIe (pcie_swap_share_impossible).",
    Confidence.ESTIMATE,
    f"swapped bytes x {HEADER_FACTOR:g} for packet headers / PCIe bytes, over the same minute; up to {SHARE_SLACK:g} "
    "it is 1, above that absent",
    _INPUTS,
    labels=("direction",),
    window_seconds=SHARE_SECONDS,
)
UNEXPLAINED = Signal(
    "pcie_unexplained_bytes_per_second",
    Kind.GAUGE,
    Scope.ENGINE,
    "Bytes a second over PCIe on all GPUs of the engine, over the trailing minute, that no engine's swap explains: "
    "loading, activations, traffic between GPUs, other programs. Swap of other engines on the same GPUs is taken off "
    "too; absent where one of them also runs on further GPUs or doesn't tell its swap.",
    Confidence.ESTIMATE,
    f"PCIe bytes - {HEADER_FACTOR:g} x swapped bytes of all engines on these GPUs, over the same minute",
    _INPUTS,
    labels=("direction",),
    window_seconds=SHARE_SECONDS,
)
IMPOSSIBLE = Signal(
    "pcie_swap_share_impossible",
    Kind.GAUGE,
    Scope.ENGINE,
    "1 when an engine's swap has for 90 s been over 10 % more than went over PCIe on the GPUs it is joined with: these "
    "are not its GPUs or not all of them (name them in settings: gpus), or its host memory isn't behind PCIe. 0 when "
    "it fits; absent where there is nothing to judge.",
    Confidence.MEASURED,
    f"swapped bytes x {HEADER_FACTOR:g} above {SHARE_SLACK:g} x PCIe bytes, at 1 MB/s of swap and more",
    _INPUTS,
    window_seconds=IMPOSSIBLE_SECONDS,
    is_state=True,
)


class Bytes(NamedTuple):
    """Bytes of both directions over one time; None where not known."""

    into: float | None
    out: float | None


class Told(NamedTuple):
    """What an engine swapped and its GPUs carried in one direction, over the time between two instants."""

    start: float
    end: float
    swapped: float
    carried: float

    def fits(self, more: float) -> bool:
        """Whether as much as was swapped, and ``more``, can have gone over PCIe."""
        return (self.swapped + more) * HEADER_FACTOR <= SHARE_SLACK * self.carried


INTO, OUT = ("in",), ("out",)
Directed = tuple[tuple[str, ...], Told]


@dataclass(frozen=True, slots=True)
class AttributionState:
    """Since when the engine has swapped more than its GPUs carried; who counts each GPU's bytes, and since when."""

    impossible: Standstill = Standstill()
    sources: Mapping[str, tuple[str, float]] = field(default_factory=dict)


def _derive(join: Join, _facts: EngineFacts, state: AttributionState) -> tuple[AttributionState, list[Point]]:
    sources = {window.newest.identity.uuid: _source(window, state.sources) for window in join.gpus}
    if join.gpus_stale or not join.gpus:
        return AttributionState(sources=sources), []
    counted_since = max(since for _, since in sources.values())
    read_until = min(window.newest.at for window in join.gpus)
    told = _told(join, read_until, counted_since)
    points = [
        Point(SWAP_SHARE, labels, min(1.0, each.swapped * HEADER_FACTOR / each.carried))
        for labels, each in told
        if each.carried > 0 and each.fits(0.0)
    ]
    points += _unexplained(join, told, read_until, counted_since)
    judged = [each for _, each in told if each.swapped * HEADER_FACTOR >= JUDGED_FROM_BYTES]
    if not judged:
        return AttributionState(sources=sources), points
    end = judged[0].end
    holds = not all(each.fits(0.0) for each in judged)
    state = AttributionState(state.impossible.seen(holds=holds, since=end), sources)
    if state.impossible.since is None:
        points.append(Point(IMPOSSIBLE, (), 0.0))
    elif state.impossible.lasted(end, IMPOSSIBLE_SECONDS):
        points.append(Point(IMPOSSIBLE, (), 1.0))
    return state, points


def _unexplained(
    join: Join, told: Sequence[Directed], read_until: float, counted_since: float
) -> Iterator[Point]:
    """What the swap of no engine explains: over a minute that all of them were read around."""
    others: list[Bytes] = []
    if join.neighbours:
        if not all(each.fresh and each.within for each in join.neighbours):
            return
        told = _told(
            join, min(read_until, *(each.engine.newest.at for each in join.neighbours)), counted_since
        )
        for _, each in told[:1]:
            others = [_swapped(one.engine, each.start, each.end) for one in join.neighbours]
    theirs = _total(others)
    for labels, each in told:
        more = theirs.into if labels == INTO else theirs.out
        if more is not None and each.fits(more):
            left = max(0.0, each.carried - (each.swapped + more) * HEADER_FACTOR)
            yield Point(UNEXPLAINED, labels, left / (each.end - each.start))


def _told(join: Join, read_until: float, counted_since: float) -> list[Directed]:
    """What is known of each direction, over the newest minute up to ``read_until``."""
    ends = _ends(join.engine, read_until)
    if ends is None or counted_since > ends[0]:
        return []
    swapped = _swapped(join.engine, *ends)
    carried = _total([_carried(window, *ends) for window in join.gpus])
    return [
        (labels, Told(*ends, mine, gone))
        for labels, mine, gone in zip((INTO, OUT), swapped, carried, strict=True)
        if mine is not None and gone is not None
    ]


def _source(window: Window[GpuSample], sources: Mapping[str, tuple[str, float]]) -> tuple[str, float]:
    """Who counts a GPU's bytes and since when: one that was not counted for a moment is counted by the same."""
    now = window.newest
    before = sources.get(now.identity.uuid)
    if before is None:
        return ("" if now.pcie is None else now.pcie.source, now.at)
    if now.pcie is None or now.pcie.source == before[0]:
        return before
    return now.pcie.source, now.at


def _ends(engine: Window[EngineSample], until: float) -> tuple[float, float] | None:
    """The newest quick reads of the engine, a minute apart, not later than ``until``."""
    samples = engine.samples
    end = next((each.at for each in reversed(samples) if each.at <= until and _is_quick(each)), -math.inf)
    if until - end > LONGEST_GAP_SECONDS:
        return None
    # a minute of samples is not gone through one by one, each second
    after_start = bisect_right(samples, START_SLACK_SECONDS - SHARE_SECONDS, key=lambda each: each.at - end)
    quick = (samples[place].at for place in range(after_start - 1, -1, -1) if _is_quick(samples[place]))
    start = next(quick, -math.inf)
    return None if end - start > LATEST_START_SECONDS else (start, end)


def _is_quick(sample: EngineSample) -> bool:
    return sample.read_seconds <= LONGEST_READ_SECONDS


def _total(parts: Sequence[Bytes]) -> Bytes:
    """The sum, where every part is known."""
    into = [part.into for part in parts if part.into is not None]
    out = [part.out for part in parts if part.out is not None]
    return Bytes(sum(into) if len(into) == len(parts) else None, sum(out) if len(out) == len(parts) else None)


def _swapped(window: Window[EngineSample], start: float, end: float) -> Bytes:
    """What an engine swapped: all its ranks, which have to be the same at both ends."""
    minute = span(window, start, end)
    if minute is None:
        return Bytes(None, None)
    names = {tuple((rank.rank, rank.model_name) for rank in sample.ranks) for sample in minute.around}
    if len(names) > 1:
        return Bytes(None, None)
    return Bytes(
        minute.rise(_swap_of(lambda rank: rank.swap_in_bytes_total)),
        minute.rise(_swap_of(lambda rank: rank.swap_out_bytes_total)),
    )


def _swap_of(counter: Callable[[RankSample], float | None]) -> Callable[[EngineSample], float | None]:
    def read(sample: EngineSample) -> float | None:
        counts = [0.0 if tier_enabled(rank) is False else counter(rank) for rank in sample.ranks]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None

    return read


def _carried(window: Window[GpuSample], start: float, end: float) -> Bytes:
    """What one GPU's PCIe carried, none of it ambiguous."""
    minute = span(window, start, end)
    if minute is None:
        return Bytes(None, None)
    first, *_, last = minute.around
    if first.pcie is None or last.pcie is None or first.pcie.source == "window":
        return Bytes(None, None)
    if first.pcie.ambiguous_intervals_total != last.pcie.ambiguous_intervals_total:
        return Bytes(None, None)
    if first.pcie.in_bytes_total is None and first.pcie.out_bytes_total is None:
        return _carried_by_rates(minute)
    return Bytes(minute.rise(_in_total), minute.rise(_out_total))


def _in_total(sample: GpuSample) -> float | None:
    return None if sample.pcie is None else sample.pcie.in_bytes_total


def _out_total(sample: GpuSample) -> float | None:
    return None if sample.pcie is None else sample.pcie.out_bytes_total


def _carried_by_rates(minute: Span[GpuSample]) -> Bytes:
    """Rates, each of the time up to its sample, over that part of the time that is between the ends."""
    into = out = held = 0.0
    for before, after in itertools.pairwise(minute.samples):
        then, now = before.pcie, after.pcie
        if then is None or now is None or after.at - before.at > LONGEST_GAP_SECONDS:
            return Bytes(None, None)
        rates = (now.in_bytes_per_second, now.out_bytes_per_second)
        same = rates == (then.in_bytes_per_second, then.out_bytes_per_second) and any(rates)
        held = held + after.at - before.at if same else 0.0
        if held > MOST_HELD_SECONDS:
            return Bytes(None, None)
        seconds = min(after.at, minute.end) - max(before.at, minute.start)
        into += math.nan if rates[0] is None else rates[0] * seconds
        out += math.nan if rates[1] is None else rates[1] * seconds
    return Bytes(*(each if math.isfinite(each) else None for each in (into, out)))


ATTRIBUTION = Phenomenon(
    "pcie_attribution", (SWAP_SHARE, UNEXPLAINED, IMPOSSIBLE), _derive, AttributionState()
)
