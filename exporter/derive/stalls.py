"""Engines that stop: decode that stands still, a frozen process, a scheduler that admits nobody."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.sample import ALL_RANKS, RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import LONGEST_GAP_SECONDS, Window

COUNT_FROM_SECONDS = 2.0
"""At a sample a second a shorter standstill can't be told from two tokens that fell badly."""
TYPICAL_SECONDS = 30.0
ENOUGH_INTERVALS = 5
FROZEN_AFTER_SECONDS = 30.0
FROZEN_PREFILL_FACTOR = 3.0
FROZEN_AT_LATEST_SECONDS = 120.0
REMEMBER_PREFILL_SECONDS = 600.0
"""A prefill seen longer ago than this makes nobody patient any more."""
DEADLOCKED_AFTER_SECONDS = 60.0

TOKEN_AGE = Signal(
    "last_token_age_seconds",
    Kind.GAUGE,
    Scope.RANK,
    "Seconds for which no token came while sequences ran; 0 while tokens come; absent before the second sample.",
    Confidence.LOWER_BOUND,
    "since generated tokens last moved, between samples, with running > 0",
    ("generation_tokens_total", "running"),
    follows_reads=True,
    misses_between_reads=True,
    least_change=2.0,
)
STALL_SECONDS = Signal(
    "decode_stall_seconds_total",
    Kind.COUNTER,
    Scope.RANK,
    "Seconds in which sequences ran and no token came. Standstills under 2 s are not counted.",
    Confidence.ESTIMATE,
    "intervals without a token, and the share of those around them that the usual token rate leaves unexplained",
    ("generation_tokens_total", "running"),
    follows_reads=True,
    misses_between_reads=True,
)
FROZEN = Signal(
    "engine_frozen",
    Kind.GAUGE,
    Scope.RANK,
    "1 when nothing at all has moved for 30 s, and for 3 times the longest prefill of the last 10 min (up to 2 min), "
    "while sequences run; else 0; absent while that can't be known yet. SGLang may show gauges of a moment that has "
    "passed for 30 s, which are waited for.",
    Confidence.MEASURED,
    "all counters and gauges of the rank unchanged, one that moves with each step among them; where steps are counted, "
    "those; of a front end, tokens",
    (
        "running",
        "waiting",
        "kv_usage_ratio",
        "generation_tokens_total",
        "prompt_tokens_total",
        "heartbeat",
        "preemptions_total",
    ),
    is_state=True,
    rests_at_zero=True,
    window_seconds=FROZEN_AFTER_SECONDS,
    source="SIGSTOP of a real engine core: /metrics answers 200 with frozen numbers",
    follows_reads=True,
)
DEADLOCKED = Signal(
    "engine_deadlocked",
    Kind.GAUGE,
    Scope.RANK,
    "1 when sequences have waited, or stood swapped out, for 60 s and none runs, else 0; absent while that can't be "
    "known yet.",
    Confidence.MEASURED,
    "running 0 with waiting + swapped above 0 and no token computed, without a break",
    ("running", "waiting", "swapped", "generation_tokens_total", "prompt_tokens_total"),
    window_seconds=DEADLOCKED_AFTER_SECONDS,
    source="vLLM issues 39734, 45388",
    follows_reads=True,
    is_state=True,
    rests_at_zero=True,
)


@dataclass(frozen=True, slots=True)
class Standstill:
    """Since when a condition holds (None: it doesn't), and whether the moment before it was seen."""

    since: float | None = None
    begin_seen: bool = False

    def seen(self, *, holds: bool, since: float) -> Standstill:
        """The state after a sample; where the condition begins to hold with it, it did at ``since``."""
        if not holds:
            return Standstill(None, begin_seen=True)
        return self if self.since is not None else Standstill(since, self.begin_seen)

    def lasted(self, now: float, seconds: float) -> bool | None:
        """Whether it has held for ``seconds``; None while it may have, since before the watch began."""
        if self.since is None:
            return False
        long = now - self.since >= seconds
        return long if long or self.begin_seen else None


@dataclass(frozen=True, slots=True)
class StallState:
    """What outlives the window.

    ``still_since``: the sample from which no token came; ``lead_seconds``: how long it had lasted by
    then; ``counted_seconds``: how much of it is in ``stalled_seconds``, all seconds so far;
    ``typical_rate``: tokens a second before it; ``longest_prefill_seconds``: longest standstill that a
    prefill ended, at ``longest_prefill_at``; ``unchanged``: nothing moves though sequences run;
    ``idle``: sequences wait or are swapped out, and none runs.
    """

    stalled_seconds: float = 0.0
    still_since: float | None = None
    lead_seconds: float = 0.0
    counted_seconds: float = 0.0
    typical_rate: float | None = None
    longest_prefill_seconds: float = 0.0
    longest_prefill_at: float = 0.0
    unchanged: Standstill = Standstill()
    idle: Standstill = Standstill()


def _derive(
    window: Window[RankSample], _facts: EngineFacts, state: StallState
) -> tuple[StallState, list[Point]]:
    now = window.newest
    before = window.samples[-2] if len(window.samples) > 1 else None
    if before is not None and (window.restarted() or now.at - before.at > LONGEST_GAP_SECONDS):
        before = None
        state = replace(state, unchanged=Standstill(), idle=Standstill())
    points: list[Point] = []
    if now.running is not None and now.tokens_so_far is not None and now.gauges_are_fresh:
        state = _decode(window, before, state)
        points.append(Point(STALL_SECONDS, (), state.stalled_seconds))
        if before is not None or now.running == 0:
            age = now.at - state.still_since if state.still_since is not None else 0.0
            points.append(Point(TOKEN_AGE, (), age))
    if _shows_life(now) and (before is not None or now.running == 0):
        holds = before is not None and bool(now.running) and _pulse(now) == _pulse(before)
        since = before.at if before is not None else now.at
        state = replace(state, unchanged=state.unchanged.seen(holds=holds, since=since))
        patience = _frozen_after(state) + now.gauges_hold_seconds
        points += _told(FROZEN, state.unchanged.lasted(now.at, patience))
    if now.waiting is None or not _tells_who_runs(now):
        state = replace(state, idle=Standstill())
    else:
        left_out = now.waiting + (now.swapped or 0.0)
        holds = now.running == 0 and left_out > 0 and not (before and _computes(before, now))
        state = replace(state, idle=state.idle.seen(holds=holds, since=now.at))
        points += _told(DEADLOCKED, state.idle.lasted(now.at, DEADLOCKED_AFTER_SECONDS))
    return state, points


def _told(signal: Signal, holds: bool | None) -> list[Point]:  # noqa: FBT001 -- the one thing it is about
    return [] if holds is None else [Point(signal, (), float(holds))]


def _decode(window: Window[RankSample], before: RankSample | None, state: StallState) -> StallState:
    """Counts a standstill: its whole intervals, and its share of the intervals at both ends."""
    now = window.newest
    if before is None or before.tokens_so_far is None or now.tokens_so_far is None:
        return replace(state, still_since=None, counted_seconds=0.0)
    moved = now.tokens_so_far - before.tokens_so_far
    if moved == 0 and now.running and before.running:
        if state.still_since is None:
            typical = _typical_rate(window)
            lead = _stood_still(window.samples[-3:-1], typical)
            state = replace(state, still_since=before.at, typical_rate=typical, lead_seconds=lead)
        since = before.at if state.still_since is None else state.still_since
        return _counted(state, now.at - since, 0.0)
    if state.still_since is None:
        return state
    still = before.at - state.still_since
    state = _counted(state, still, _stood_still((before, now), state.typical_rate) if moved > 0 else 0.0)
    state = replace(state, still_since=None, counted_seconds=0.0)
    if now.at - state.longest_prefill_at > REMEMBER_PREFILL_SECONDS:
        state = replace(state, longest_prefill_seconds=0.0)
    # only prompts that were taken in make a standstill a prefill, and none that was called frozen is one
    took = now.prompt_tokens_so_far is not None and before.prompt_tokens_so_far is not None
    prefilled = took and (now.prompt_tokens_so_far or 0.0) > (before.prompt_tokens_so_far or 0.0)
    if prefilled and state.longest_prefill_seconds < still < _frozen_after(state):
        state = replace(state, longest_prefill_seconds=still, longest_prefill_at=now.at)
    return state


def _frozen_after(state: StallState) -> float:
    patience = FROZEN_PREFILL_FACTOR * state.longest_prefill_seconds
    return max(FROZEN_AFTER_SECONDS, min(patience, FROZEN_AT_LATEST_SECONDS))


def _counted(state: StallState, still: float, tail: float) -> StallState:
    seconds = state.lead_seconds + still + tail
    if seconds < COUNT_FROM_SECONDS:
        return state
    stalled = state.stalled_seconds + max(0.0, seconds - state.counted_seconds)
    return replace(state, counted_seconds=seconds, stalled_seconds=stalled)


def _typical_rate(window: Window[RankSample]) -> float | None:
    """Median tokens a second of as many sequences as run now, in the time before they stood still.

    The newest interval stands still and the one before it may have begun to: both are left out. Where
    there are too few of as many sequences, the latest intervals have to do.
    """
    moving = [
        (
            after.running,
            (after.tokens_so_far - before.tokens_so_far) / (after.at - before.at),
        )
        for before, after in window.intervals(min(TYPICAL_SECONDS, _lived(window)))[:-2]
        if after.tokens_so_far is not None
        and before.tokens_so_far is not None
        and after.tokens_so_far > before.tokens_so_far
    ]
    alike = [rate for running, rate in moving if running == window.newest.running]
    if len(alike) < ENOUGH_INTERVALS:
        alike = [rate for _, rate in moving[-ENOUGH_INTERVALS:]]
    return statistics.median(alike) if alike else None


def _lived(window: Window[RankSample]) -> float:
    return window.newest.at - window.samples[0].at


def _stood_still(pair: tuple[RankSample, ...], typical: float | None) -> float:
    """Seconds of the interval that its tokens, at the usual rate, leave unexplained."""
    if len(pair) < 2 or typical is None or typical <= 0:  # noqa: PLR2004 -- an interval has two ends
        return 0.0
    before, after = pair
    seconds = after.at - before.at
    if before.tokens_so_far is None or after.tokens_so_far is None or seconds > COUNT_FROM_SECONDS:
        return 0.0
    tokens = max(0.0, after.tokens_so_far - before.tokens_so_far)
    return max(0.0, seconds - tokens / typical)


def _computes(before: RankSample, now: RankSample) -> bool:
    """Whether tokens came or were taken in since: SGLang says of those alone who decode that they run."""
    pairs = [(before.tokens_so_far, now.tokens_so_far)]
    if not _counts_steps(now):  # else a router takes prompts in, whatever becomes of them
        pairs.append((before.prompt_tokens_so_far, now.prompt_tokens_so_far))
    return any(then is not None and since is not None and since > then for then, since in pairs)


def _tells_who_runs(sample: RankSample) -> bool:
    """Whether a sequence is told to run as soon as it does, and no more once it doesn't."""
    late = "running" in sample.told_at_end or sample.gauges_stand_when_idle
    return sample.running is not None and not late


def _shows_life(sample: RankSample) -> bool:
    """Whether something is told that moves with each step of an engine at work, and whether it is at work."""
    if sample.gauges_stand_when_idle:
        return False
    return sample.running is not None and (sample.tokens_so_far is not None or sample.heartbeat is not None)


def _counts_steps(sample: RankSample) -> bool:
    """Whether its steps are counted: then they tell of life, and the rest may be a front end's, as of TGI's router."""
    return sample.heartbeat is not None and sample.gauges_are_fresh


def _pulse(sample: RankSample) -> tuple[float | None, ...]:
    """Everything that a living engine core moves. The front end's own counters are not among it."""
    if _counts_steps(sample):
        return (sample.running, sample.generation_tokens_total, sample.heartbeat)
    if sample.rank == ALL_RANKS and sample.generation_tokens_total:
        # a front end goes on taking requests in and letting go of those who leave: tokens alone are the engines'
        return (sample.generation_tokens_total,)
    return (
        sample.running,
        sample.waiting,
        sample.swapped,
        sample.kv_usage_ratio,
        sample.generation_tokens_total,
        sample.prompt_tokens_total,
        sample.heartbeat,
        sample.preemptions_total,
        sample.finished,
        sample.prefix_queries_total,
    )


STALLS = Phenomenon("stalls", (TOKEN_AGE, STALL_SECONDS, FROZEN, DEADLOCKED), _derive, StallState())
