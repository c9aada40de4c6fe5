"""Ping-pong: preemptions of sequences that had been preempted before."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from exporter.derive.phenomenon import EngineFacts, Phenomenon, stateless
from exporter.probe_sample import Probed
from exporter.sample import Histogram, RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

HISTOGRAM_SECONDS = 300.0
BOUND_SECONDS = 30.0
ENOUGH_FINISHED = 20
"""Preemptions of finished requests below which a share says nothing: three of five are repeats now and then."""
ENOUGH_PROBED = 5

PINGPONG = Signal(
    "pingpong_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Share of preemptions that hit a sequence which had been preempted before. method=histogram: over requests that "
    "finished in the trailing 5 min, or since the sidecar began (vLLM from 0.30), absent below 20 preemptions. "
    "method=bound: at least this share of the trailing 30 s; there 0 means not proven, never healthy. method=probe: "
    "those of the trailing 30 s that came within 30 s of the same sequence's last, absent below 5.",
    Confidence.LOWER_BOUND,
    "histogram: sum of count x (n - 1) over the sum of n, sample by sample; bound: 1 - D / preemptions, D = all "
    "sequences that can have been preempted: in the engine at the start, or a first token since, or running now",
    (
        "request_preemptions",
        "preemptions_total",
        "time_to_first_token",
        "running",
        "waiting",
        "swapped",
        "end_to_end_latency",
    ),
    labels=("method",),
    window_seconds=HISTOGRAM_SECONDS,
    source="real vLLM 0.32: histogram 0.227 against 0.224 true over a run; the bound never above the truth. "
    "recompute-unreserved of the drill: 0.89 against 0.90",
    probed="repeat preemptions / preemptions, counted in the scheduler; under method=probe, beside the others",
)


def repeat_share(preemptions: Histogram) -> float | None:
    """Repeat share from a histogram of preemptions a request, or None without any preemption; never above the truth."""
    if not preemptions.total or preemptions.total <= 0:
        return None
    return min(1.0, _repeats(preemptions, preemptions.total) / preemptions.total)


def _repeats(preemptions: Histogram, total: float) -> float:
    """At least so many of ``total`` preemptions were repeats.

    Requests in a bucket wider than one count as its smallest whole number; and each request can have had but one first
    preemption, which says more where few requests ended and one of them had been thrown out time and again.
    """
    repeats = 0.0
    for (floor, below), (_, count) in itertools.pairwise(
        zip(preemptions.bounds, preemptions.counts, strict=True)
    ):
        # n preemptions are one first and n - 1 repeats; the bucket's smallest n is the floor's next
        repeats += (count - below) * math.floor(floor)
    return max(repeats, total - preemptions.count)


@dataclass(frozen=True, slots=True)
class FinishedState:
    """What ended in the window, step by step, so that none is looked at twice.

    ``told``: the newest sample that tells the histogram; ``steps``: of two such samples in a row the time of the
    first, and how many preemptions at least were repeats of what ended between them.
    """

    told: RankSample | None = None
    steps: tuple[tuple[float, float], ...] = ()


def _with_newest(window: Window[RankSample], state: FinishedState) -> FinishedState:
    """Sample by sample: between two of them few requests end, and buckets and sum tell nearly all of each."""
    before, after = state.told, window.newest
    now = _by_request(after)
    if now is None:
        return state
    then, began = None if before is None else _by_request(before), window.samples[0].at
    steps = state.steps
    # most ended without one, and those add nothing
    if before and then and now.total != then.total and not window.restarted_between(before, after):
        ended = now.minus(then)
        if ended is not None and ended.total is not None:
            steps = (*steps, (before.at, _repeats(ended, ended.total)))
    if steps and steps[0][0] < began:
        steps = tuple(step for step in steps if step[0] >= began)
    return FinishedState(after, steps)


def _share_of_finished(window: Window[RankSample], state: FinishedState) -> float | None:
    finished = window.observed_up_to(_by_request, HISTOGRAM_SECONDS)
    total = None if finished is None else finished.observed.total
    if total is None or total < ENOUGH_FINISHED:
        return None
    began = (window.trailing(HISTOGRAM_SECONDS) or window.samples)[0].at
    return min(1.0, sum(repeats for at, repeats in state.steps if at >= began) / total)


def _by_request(sample: RankSample) -> Histogram | None:
    return sample.request_preemptions


def _derive(
    window: Window[RankSample], _facts: EngineFacts, state: FinishedState
) -> tuple[FinishedState, list[Point]]:
    state = _with_newest(window, state)
    shares = (("histogram", _share_of_finished(window, state)), ("bound", _bound(window)))
    return state, [Point(PINGPONG, (method,), share) for method, share in shares if share is not None]


def _derive_probed(seen: Probed, _facts: EngineFacts) -> Iterator[Point]:
    hit = seen.probe.delta(lambda sample: sample.preemptions_total, BOUND_SECONDS)
    again = seen.probe.delta(lambda sample: sample.repeats_total, BOUND_SECONDS)
    if hit is not None and again is not None and hit.increase >= ENOUGH_PROBED:
        yield Point(PINGPONG, ("probe",), min(1.0, again.increase / hit.increase))


def _bound(window: Window[RankSample]) -> float | None:
    samples = window.trailing(BOUND_SECONDS)
    preempted = window.delta(lambda sample: sample.preemptions_total, BOUND_SECONDS)
    firsts = window.observed(lambda sample: sample.first_tokens_so_far, BOUND_SECONDS)
    if preempted is None or firsts is None or preempted.increase <= 0:
        return None
    start, now = samples[0], samples[-1]
    if window.restarted_between(start, now):
        return None
    present = _in_engine(start)
    if present is None or now.running is None or not now.gauges_are_fresh:
        return None
    candidates = present + firsts.observed.count + now.running
    return max(0.0, 1.0 - max(0.0, candidates) / preempted.increase)


def _in_engine(sample: RankSample) -> float | None:
    """At most this many sequences had begun and not ended."""
    if sample.running is None or sample.waiting is None:
        return None
    present = sample.running + sample.waiting + (sample.swapped or 0.0)
    first, ended = sample.first_tokens_so_far, sample.end_to_end_latency
    # requests that ended without a first token count in one only: then the two say nothing
    if first is not None and ended is not None and first.count >= ended.count:
        # begun less finished, and what runs without a first token yet
        present = min(present, first.count - ended.count + sample.running)
    return present


PINGPONG_PHENOMENON = Phenomenon("pingpong", (PINGPONG,), _derive, FinishedState())
PROBED_PINGPONG = stateless("probed_pingpong", (PINGPONG,), _derive_probed)
