"""Preemptions, what they cost, and the state in which little else gets done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exporter.derive.blocks import CONTENDED_USAGE, tokens_per_sequence
from exporter.derive.phenomenon import EngineFacts, Phenomenon, stateless
from exporter.sample import RankSample
from exporter.signal import PEAK_SECONDS, Confidence, Kind, Point, Scope, Signal
from exporter.window import LONGEST_GAP_SECONDS, Total, Window

RATE_SECONDS = 30.0
ENOUGH_PREEMPTIONS = 5
"""Fewer in the window say nothing about what each was worth."""

ENTER_TOKENS_PER_PREEMPTION = 50.0
LEAVE_TOKENS_PER_PREEMPTION = 200.0
LEAVE_AFTER_SECONDS = 60.0
FALLING_RATIO = 0.8
LONG_RATE_SECONDS = 120.0

PREEMPTIONS = Signal(
    "preemptions_total",
    Kind.COUNTER,
    Scope.RANK,
    "Preemptions: sequences thrown out of the KV pool. vLLM V1 tells of one with the sequence's next output, and never "
    "when it is aborted before.",
    Confidence.LAGGING,
    "rises of the engine's counter, summed from 0",
    ("preemptions_total",),
    source="real vLLM 0.32: 156 true, 155 told",
    probed="counted in the scheduler as they happen; goes on from where the engine's counter stood",
)
PREEMPTION_RATE = Signal(
    "preemptions_per_second",
    Kind.GAUGE,
    Scope.RANK,
    "Preemptions a second over the trailing 30 s.",
    Confidence.LAGGING,
    "rise over time",
    ("preemptions_total",),
    window_seconds=RATE_SECONDS,
)
TOKENS_PER_PREEMPTION = Signal(
    "tokens_per_preemption",
    Kind.GAUGE,
    Scope.RANK,
    "Tokens generated for each preemption in the trailing 30 s: hundreds under plain contention, about two when "
    "sequences throw each other out. Absent below 5 preemptions.",
    Confidence.MEASURED,
    "generated tokens / preemptions",
    ("generation_tokens_total", "preemptions_total"),
    window_seconds=RATE_SECONDS,
    source="real vLLM 0.32: 573 to 755 at 1.9 to 3.5 preemptions a second",
)
WASTED_WORK = Signal(
    "wasted_work_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Share of the tokens worked on in the trailing 30 s that preemption made the engine compute again, or, where it "
    "swaps, move out and back: a share of tokens, not of time.",
    Confidence.ESTIMATE,
    "preemptions x mean tokens a sequence x (1 - prefix hits) recomputed, or twice that moved by a swap, over itself "
    "plus generated tokens",
    ("preemptions_total", "generation_tokens_total", "kv_usage_ratio", "blocks", "block_tokens", "running"),
    window_seconds=RATE_SECONDS,
)
THRASHING = Signal(
    "thrashing",
    Kind.GAUGE,
    Scope.RANK,
    "1 while preemption eats the engine's work, else 0; absent in the first 30 s. Bounds are provisional.",
    Confidence.ESTIMATE,
    "enters below 50 tokens a preemption with a usage peak over 0.9 and token rate falling, or as few for 2 min; "
    "leaves after 60 s above 200 or of work without preemptions",
    ("generation_tokens_total", "preemptions_total", "kv_usage_ratio"),
    window_seconds=LONG_RATE_SECONDS,
)
THRASH_EPISODES = Signal(
    "thrash_episodes_total",
    Kind.COUNTER,
    Scope.RANK,
    "Times the rank began to thrash.",
    Confidence.ESTIMATE,
    "rising edges of thrashing",
    ("generation_tokens_total", "preemptions_total", "kv_usage_ratio"),
)


def _preemptions(sample: RankSample) -> float | None:
    return sample.preemptions_total


def _generated(sample: RankSample) -> float | None:
    return sample.tokens_so_far


def tokens_per_preemption(window: Window[RankSample], seconds: float = RATE_SECONDS) -> float | None:
    """Generated tokens for each preemption of the trailing ``seconds`` of one process.

    None below 5 preemptions.
    """
    samples = window.trailing(seconds)
    if not samples or window.restarted_between(samples[0], samples[-1]):
        return None
    preempted = window.delta(_preemptions, seconds)
    generated = window.delta(_generated, seconds)
    if preempted is None or generated is None or preempted.increase < ENOUGH_PREEMPTIONS:
        return None
    return generated.increase / preempted.increase


def _derive(window: Window[RankSample], _facts: EngineFacts) -> Iterator[Point]:
    preempted = window.delta(_preemptions, RATE_SECONDS)
    if preempted is None:
        return
    yield Point(PREEMPTION_RATE, (), preempted.per_second)
    each = tokens_per_preemption(window)
    if each is not None:
        yield Point(TOKENS_PER_PREEMPTION, (), each)
    generated = window.delta(_generated, RATE_SECONDS)
    tokens = _mean_sequence_tokens(window)
    if generated is None:
        return
    if preempted.increase == 0:
        if generated.increase > 0:
            yield Point(WASTED_WORK, (), 0.0)
        return
    if tokens is None:
        return
    again = preempted.increase * tokens * _share_done_again(window)
    if again + generated.increase > 0:
        yield Point(WASTED_WORK, (), again / (again + generated.increase))


def _mean_sequence_tokens(window: Window[RankSample]) -> float | None:
    """Mean tokens a running sequence held in the window."""
    held = [
        tokens
        for sample in window.trailing(RATE_SECONDS)
        if (tokens := tokens_per_sequence(sample)) is not None
    ]
    return sum(held) / len(held) if held else None


def _share_done_again(window: Window[RankSample]) -> float:
    """Passes over a preempted sequence's tokens: out and in for a swap, else what no prefix hit saves."""
    if any(sample.swapped for sample in window.trailing(RATE_SECONDS)):
        return 2.0
    asked = window.delta(lambda sample: sample.prefix_queries_total, RATE_SECONDS)
    hit = window.delta(lambda sample: sample.prefix_hits_total, RATE_SECONDS)
    if asked is None or hit is None or asked.increase <= 0:
        return 1.0
    return max(0.0, 1.0 - hit.increase / asked.increase)


@dataclass(frozen=True, slots=True)
class ThrashState:
    """Whether the rank thrashes, since when it has been calm, how often it began."""

    preemptions: Total = Total()
    thrashing: bool = False
    calm_since: float | None = None
    episodes: int = 0


def _thrash(
    window: Window[RankSample], _facts: EngineFacts, state: ThrashState
) -> tuple[ThrashState, list[Point]]:
    now = window.newest
    total = state.preemptions.fed(now.preemptions_total, restarted=window.restarted())
    if not total.known:
        return state, []
    each = tokens_per_preemption(window)
    thrashing, calm_since, episodes = state.thrashing, state.calm_since, state.episodes
    if window.restarted() or _was_silent(window):
        # whatever it did before, this is another process, or a long time later
        thrashing, calm_since = False, None
    if thrashing:
        if (each is not None and each <= LEAVE_TOKENS_PER_PREEMPTION) or _stuck(window):
            calm_since = None
        elif calm_since is None:
            calm_since = now.at
        if calm_since is not None and now.at - calm_since >= LEAVE_AFTER_SECONDS:
            thrashing, calm_since = False, None
    elif each is not None and each < ENTER_TOKENS_PER_PREEMPTION and _pressed(window):
        thrashing, episodes = True, episodes + 1
    state = ThrashState(total, thrashing, calm_since, episodes)
    points = [Point(PREEMPTIONS, (), total.value), Point(THRASH_EPISODES, (), float(episodes))]
    trailing = window.trailing(RATE_SECONDS)
    lived = bool(trailing) and not window.restarted_between(trailing[0], now)
    if (lived or thrashing) and now.tokens_so_far is not None and now.kv_usage_ratio is not None:
        points.append(Point(THRASHING, (), float(thrashing)))
    return state, points


def _pressed(window: Window[RankSample]) -> bool:
    """A full pool, and fewer tokens a second than shortly before, or as few for two minutes already."""
    peak = window.peak(lambda sample: sample.kv_usage_ratio, PEAK_SECONDS)
    if peak is None or peak <= CONTENDED_USAGE:
        return False
    for_long = tokens_per_preemption(window, LONG_RATE_SECONDS)
    if for_long is not None and for_long < ENTER_TOKENS_PER_PREEMPTION:
        return True
    short = window.delta(_generated, RATE_SECONDS)
    long = window.delta(_generated, LONG_RATE_SECONDS) or window.delta(_generated, 2 * RATE_SECONDS)
    return short is not None and long is not None and short.per_second < FALLING_RATIO * long.per_second


def _was_silent(window: Window[RankSample]) -> bool:
    samples = window.samples  # after a silence longer than the window's memory the newest stands alone
    return len(samples) < 2 or samples[-1].at - samples[-2].at > LONGEST_GAP_SECONDS  # noqa: PLR2004


def _stuck(window: Window[RankSample]) -> bool:
    """Somebody is there and no token comes: too few preemptions to judge by, but no calm."""
    generated = window.delta(_generated, RATE_SECONDS)
    now = window.newest
    return bool(now.running or now.waiting) and generated is not None and generated.increase == 0


COST = stateless("preemption_cost", (PREEMPTION_RATE, TOKENS_PER_PREEMPTION, WASTED_WORK), _derive)
THRASH = Phenomenon("thrash", (PREEMPTIONS, THRASHING, THRASH_EPISODES), _thrash, ThrashState())
