"""The probe in the engine: what it counts beyond what makes other signals exact.

Absent where the engine has no probe (docs/probe.md). All of it is told by the scheduler itself, as it happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.probe_sample import Probed, ProbeSample
from exporter.sample import STALE_AFTER_SECONDS
from exporter.signal import PEAK_SECONDS, Confidence, Kind, Point, Scope, Signal
from exporter.window import Total, Window

RATE_SECONDS = 30.0
COST_SECONDS = 60.0
STEP_SECONDS = 10.0

REPEATS = Signal(
    "repeat_preemptions_total",
    Kind.COUNTER,
    Scope.RANK,
    "Preemptions of a sequence within 30 s of its last one: ping-pong, counted.",
    Confidence.MEASURED,
    "counted in the scheduler, from 0 since the sidecar started",
    ("repeats_total",),
)
TOKENS_BETWEEN = Signal(
    "tokens_between_preemptions",
    Kind.GAUGE,
    Scope.RANK,
    "Tokens a sequence made between one preemption and the next, the mean over the repeats of the trailing 30 s; near "
    "0 each recompute is for nothing. Absent without repeats.",
    Confidence.MEASURED,
    "tokens made in between / repeat preemptions",
    ("repeat_tokens_total", "repeats_total"),
    window_seconds=RATE_SECONDS,
)
STEPS = Signal(
    "scheduler_steps_total",
    Kind.COUNTER,
    Scope.RANK,
    "Steps of the engine's scheduler.",
    Confidence.MEASURED,
    "calls of schedule(), from 0 since the sidecar started",
    ("steps_total",),
)
LONGEST_STEP = Signal(
    "scheduler_longest_step_seconds",
    Kind.GAUGE,
    Scope.RANK,
    "The longest time from one step to the next in the trailing 10 s, while sequences ran; one that has not ended yet "
    "counts as far as it has gone.",
    Confidence.MEASURED,
    "maximum over the messages of that time",
    ("longest_step_seconds",),
    window_seconds=STEP_SECONDS,
    peak=True,
)
SEQUENCE_BLOCKS = Signal(
    "sequence_blocks",
    Kind.GAUGE,
    Scope.RANK,
    "KV blocks in the block tables of running sequences; one that several share counts for each. Absent where some KV "
    "groups give blocks back while a sequence runs.",
    Confidence.MEASURED,
    "lengths of block tables, added up in a step",
    ("groups",),
)
OVERHEAD = Signal(
    "probe_overhead_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Share of the engine's step time that the probe took for itself in the trailing 60 s, its thread included.",
    Confidence.MEASURED,
    "time inside the probe's wrappers and its thread / time from step to step while sequences ran",
    ("own_seconds_total", "busy_seconds_total"),
    window_seconds=COST_SECONDS,
)


@dataclass(frozen=True, slots=True)
class Totals:
    """Our own totals, which outlive the engine."""

    steps: Total = field(default_factory=Total)
    repeats: Total = field(default_factory=Total)


def _derive(seen: Probed, _facts: EngineFacts, totals: Totals) -> tuple[Totals, list[Point]]:
    window, now, restarted = seen.probe, seen.probe.newest, seen.probe.restarted()
    totals = Totals(
        totals.steps.fed(float(now.steps_total), restarted=restarted),
        totals.repeats.fed(_repeats(now), restarted=restarted),
    )
    points = [Point(STEPS, (), totals.steps.value), *_gauges(window)]
    if totals.repeats.known:
        points.append(Point(REPEATS, (), totals.repeats.value))
    return totals, points


def _gauges(window: Window[ProbeSample]) -> Iterator[Point]:
    now = window.newest
    for seconds, is_peak in ((STEP_SECONDS, False), (PEAK_SECONDS, True)):
        longest = window.peak(lambda sample: sample.longest_step_seconds, seconds)
        if longest is not None:
            yield Point(LONGEST_STEP, (), longest, is_peak)
    if now.blocks is not None and now.age_seconds <= STALE_AFTER_SECONDS:
        yield Point(SEQUENCE_BLOCKS, (), now.blocks)
    again = window.delta(_repeats, RATE_SECONDS)
    tokens = window.delta(_repeat_tokens, RATE_SECONDS)
    if again is not None and tokens is not None and again.increase > 0:
        yield Point(TOKENS_BETWEEN, (), tokens.increase / again.increase)
    own = window.delta(lambda sample: sample.own_seconds_total, COST_SECONDS)
    busy = window.delta(lambda sample: sample.busy_seconds_total, COST_SECONDS)
    if own is not None and busy is not None and busy.increase > 0:
        yield Point(OVERHEAD, (), min(1.0, own.increase / busy.increase))


def _repeats(sample: ProbeSample) -> float | None:
    return None if sample.repeats_total is None else float(sample.repeats_total)


def _repeat_tokens(sample: ProbeSample) -> float | None:
    return None if sample.repeat_tokens_total is None else float(sample.repeat_tokens_total)


PROBE = Phenomenon(
    "probe", (REPEATS, TOKENS_BETWEEN, STEPS, LONGEST_STEP, SEQUENCE_BLOCKS, OVERHEAD), _derive, Totals()
)
