"""Preemptions, what they cost, and the state in which little else gets done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exporter.derive.blocks import CONTENDED_USAGE, block_slots, tokens_per_sequence, used_blocks
from exporter.derive.phenomenon import EngineFacts, Phenomenon, stateless
from exporter.sample import RankSample
from exporter.signal import PEAK_SECONDS, Confidence, Kind, Point, Scope, Signal
from exporter.window import LONGEST_GAP_SECONDS, Total, Window

RATE_SECONDS = 30.0
ENOUGH_PREEMPTIONS = 5
"""Fewer in the window say nothing about what each was worth."""

ENTER_GAIN_RATIO = 0.2
LEAVE_GAIN_RATIO = 0.4
"""Tokens generated for each preemption, over the tokens of a sequence: what its room was worth. A sequence that is
thrown out leaves room for as many tokens as it held, so that this is about 1 where it stays out until somebody ends,
whatever the load. Less comes of it where the room is taken by those who were thrown out before. Set from the drill:
docs/drill.md, "What tells thrashing from contention"."""
LEAVE_AFTER_SECONDS = 60.0

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
    "swaps, move out and back: a share of tokens, not of time. Too high where a prefix cache or a tier keeps what the "
    "preempted had: vLLM from 0.11.2 doesn't count those lookups.",
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
    "1 while sequences are thrown out for next to nothing: what is generated until the next one is a fifth at most of "
    "what the thrown out held; else 0. About as much comes of it in plain contention. Absent in the first 30 s.",
    Confidence.ESTIMATE,
    "tokens a preemption over mean tokens a sequence: enters below 0.2 with a usage peak over 0.9, leaves after 60 s "
    "above 0.4 or of work without preemptions",
    ("generation_tokens_total", "preemptions_total", "kv_usage_ratio", "blocks", "block_tokens", "running"),
    window_seconds=RATE_SECONDS,
    source="the drill, docs/drill.md: thrashing against contention on eleven fleets",
    follows_reads=True,
    is_state=True,
    rests_at_zero=True,
)
THRASH_EPISODES = Signal(
    "thrash_episodes_total",
    Kind.COUNTER,
    Scope.RANK,
    "Times the rank began to thrash.",
    Confidence.ESTIMATE,
    "rising edges of thrashing",
    ("generation_tokens_total", "preemptions_total", "kv_usage_ratio", "blocks", "block_tokens", "running"),
    follows_reads=True,
    misses_between_reads=True,
)


def _preemptions(sample: RankSample) -> float | None:
    return sample.preemptions_total


def _generated(sample: RankSample) -> float | None:
    return sample.tokens_so_far


def tokens_per_preemption(window: Window[RankSample]) -> float | None:
    """Generated tokens for each preemption of the trailing 30 s of one process.

    None below 5 preemptions.
    """
    samples = window.trailing(RATE_SECONDS)
    if not samples or window.restarted_between(samples[0], samples[-1]):
        return None
    preempted = window.delta(_preemptions, RATE_SECONDS)
    generated = window.delta(_generated, RATE_SECONDS)
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


def gain_ratio(window: Window[RankSample]) -> float | None:
    """Tokens generated for each preemption over the mean tokens of a running sequence, in the trailing 30 s.

    None below 5 preemptions.
    """
    each, held = tokens_per_preemption(window), _mean_sequence_tokens(window)
    return each / held if each is not None and held else None


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
    gain = gain_ratio(window)
    thrashing, calm_since, episodes = state.thrashing, state.calm_since, state.episodes
    if window.restarted() or _was_silent(window):
        # whatever it did before, this is another process, or a long time later
        thrashing, calm_since = False, None
    if thrashing:
        if (gain is not None and gain <= LEAVE_GAIN_RATIO) or _stuck(window):
            calm_since = None
        elif calm_since is None:
            calm_since = now.at
        if calm_since is not None and now.at - calm_since >= LEAVE_AFTER_SECONDS:
            thrashing, calm_since = False, None
    elif gain is not None and gain < ENTER_GAIN_RATIO and _is_full(window):
        thrashing, episodes = True, episodes + 1
    state = ThrashState(total, thrashing, calm_since, episodes)
    points = [Point(PREEMPTIONS, (), total.value), Point(THRASH_EPISODES, (), float(episodes))]
    trailing = window.trailing(RATE_SECONDS)
    lived = bool(trailing) and not window.restarted_between(trailing[0], now)
    if (
        (lived or thrashing)
        and now.tokens_so_far is not None
        and block_slots(now)
        and used_blocks(now) is not None
    ):
        points.append(Point(THRASHING, (), float(thrashing)))
    return state, points


def _is_full(window: Window[RankSample]) -> bool:
    peak = window.peak(lambda sample: sample.kv_usage_ratio, PEAK_SECONDS)
    return peak is not None and peak > CONTENDED_USAGE


def _was_silent(window: Window[RankSample]) -> bool:
    samples = window.samples  # after a silence longer than the window's memory the newest stands alone
    return len(samples) < 2 or samples[-1].at - samples[-2].at > LONGEST_GAP_SECONDS  # noqa: PLR2004


def _stuck(window: Window[RankSample]) -> bool:
    """Somebody is there and no token comes: too few preemptions to judge by, but no calm."""
    generated = window.delta(_generated, RATE_SECONDS)
    now = window.newest
    return (
        bool(now.running or now.waiting or now.swapped) and generated is not None and generated.increase == 0
    )


COST = stateless("preemption_cost", (PREEMPTION_RATE, TOKENS_PER_PREEMPTION, WASTED_WORK), _derive)
THRASH = Phenomenon("thrash", (PREEMPTIONS, THRASHING, THRASH_EPISODES), _thrash, ThrashState())
