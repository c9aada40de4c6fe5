"""Prompts: their share of the work, whom they hold up, how long they are, what the prefix cache saves."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence

from exporter.derive.phenomenon import EngineFacts, stateless
from exporter.sample import RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

MIX_SECONDS = 30.0
BLOCKED_SECONDS = 60.0
PROMPT_SECONDS = 300.0
QUEUE_MOVES_SECONDS = 5.0
"""A queue of which somebody began this lately moves, as one before a full batch does."""
LONGEST_PREFILL_SECONDS = 30.0
"""Who stands still for longer is called frozen: a first token after that says nothing of what held it up."""
ENOUGH_INTERVALS = 5
"""Fewer with tokens say nothing of the usual rate."""
LOW_USAGE = 0.7
"""A queue below this usage doesn't wait for blocks that others hold, but behind somebody."""

PREFILL_RATIO = Signal(
    "prefill_token_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Prompt share of the tokens computed in the trailing 30 s.",
    Confidence.ESTIMATE,
    "computed prompt tokens / (they + generated tokens); prefix hits are left out where the engine tells them apart; "
    "recomputed tokens of preempted sequences are counted by vLLM V0 and not by V1",
    ("prompt_tokens_computed_total", "prompt_tokens_total", "generation_tokens_total"),
    window_seconds=MIX_SECONDS,
    by_request=True,
)
HEAD_OF_LINE = Signal(
    "head_of_line_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Share of the trailing 60 s in which somebody stood behind somebody else: sequences waiting at low KV usage, or "
    "sequences that had begun without a token for a second or more until a prompt was computed.",
    Confidence.ESTIMATE,
    "time with waiting (for capacity, where told) > 0 at usage below 0.7 and no request begun for 5 s; or, where a "
    "first token ends it within 30 s and nothing was swapped, with sequences running and no token but first ones, and "
    "of the intervals around what the usual token rate leaves unexplained",
    (
        "waiting",
        "waiting_by_reason",
        "running",
        "kv_usage_ratio",
        "generation_tokens_total",
        "time_to_first_token",
        "swapped",
    ),
    window_seconds=BLOCKED_SECONDS,
    source="vLLM issues 31731, 35852, 11517",
    follows_reads=True,
)
LONG_PROMPTS = Signal(
    "long_prompt_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Share of requests that finished in the trailing 5 min whose prompt was longer than `over_tokens`, the engine's "
    "bucket bound next below the configured quota.",
    Confidence.MEASURED,
    "rise of the engine's prompt length histogram above the bound",
    ("request_prompt_tokens",),
    labels=("over_tokens",),
    window_seconds=PROMPT_SECONDS,
    by_request=True,
)
PREFIX_HITS = Signal(
    "prefix_hit_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Share of looked-up prompt tokens found in the GPU's prefix cache in the trailing 60 s. vLLM to 0.26 looks a "
    "request that can't be admitted up again at every step, which pulls this towards that request.",
    Confidence.MEASURED,
    "hits / queries; vLLM V0 tells only an average over its whole life, which is not used",
    ("prefix_hits_total", "prefix_queries_total"),
    window_seconds=BLOCKED_SECONDS,
    source="vLLM issue 43736",
    by_request=True,
)


def _derive(window: Window[RankSample], facts: EngineFacts) -> Iterator[Point]:
    computed = window.delta(_computed, MIX_SECONDS)
    generated = window.delta(lambda sample: sample.tokens_so_far, MIX_SECONDS)
    if computed is not None and generated is not None and computed.increase + generated.increase > 0:
        yield Point(PREFILL_RATIO, (), computed.increase / (computed.increase + generated.increase))
    blocked = _blocked_ratio(window)
    if blocked is not None:
        yield Point(HEAD_OF_LINE, (), blocked)
    prompts = window.observed(lambda sample: sample.request_prompt_tokens, PROMPT_SECONDS)
    if prompts is not None and prompts.observed.count > 0:
        within = prompts.observed.at_most(facts.long_prompt_tokens)
        if within is not None:
            bound, count = within
            yield Point(LONG_PROMPTS, (f"{bound:.0f}",), 1.0 - count / prompts.observed.count)
    asked = window.delta(lambda sample: sample.prefix_queries_total, BLOCKED_SECONDS)
    hit = window.delta(lambda sample: sample.prefix_hits_total, BLOCKED_SECONDS)
    if asked is not None and hit is not None and asked.increase > 0:
        yield Point(PREFIX_HITS, (), min(1.0, hit.increase / asked.increase))


def _computed(sample: RankSample) -> float | None:
    told = sample.prompt_tokens_computed_total
    return told if told is not None else sample.prompt_tokens_so_far


def _blocked_ratio(window: Window[RankSample]) -> float | None:
    blocked = covered = 0.0
    admitted_at: float | None = None
    intervals = window.intervals(BLOCKED_SECONDS)
    for (before, after), behind in zip(intervals, _behind_prefills(intervals), strict=True):
        if _admits(before, after):
            admitted_at = after.at
        if after.waiting is None or after.running is None or after.kv_usage_ratio is None:
            continue
        if "time_to_first_token" in after.told_at_end:
            continue  # whether the queue moves can't be seen
        seconds = after.at - before.at
        covered += seconds
        queues = _queues_at_low_usage(before) and _queues_at_low_usage(after)
        moves = admitted_at is not None and after.at - admitted_at < QUEUE_MOVES_SECONDS
        blocked += seconds if queues and not moves else behind
    return blocked / covered if covered > 0 else None


def _queues_at_low_usage(sample: RankSample) -> bool:
    usage = sample.kv_usage_ratio
    return bool(sample.waiting_for_capacity) and usage is not None and usage < LOW_USAGE


def _admits(before: RankSample, after: RankSample) -> bool:
    """Whether a request began."""
    then, now = before.first_tokens_so_far, after.first_tokens_so_far
    return then is not None and now is not None and now.count > then.count


def _behind_prefills(intervals: Sequence[tuple[RankSample, RankSample]]) -> list[float]:
    """Seconds of each interval in which sequences that had begun got no token until a prompt was computed.

    V1 computes a whole prompt and a token of everybody else in one iteration, V0 prompts alone, one iteration after the
    other: in both no token comes but first ones, and the standstill ends with one of these.
    """
    decoded = [_decoded(before, after) for before, after in intervals]
    still = [
        bool(before.running) and tokens == 0 for (before, _), tokens in zip(intervals, decoded, strict=True)
    ]
    behind = [0.0] * len(intervals)
    if not any(still):  # as nearly always
        return behind
    usual = _usual_rate(intervals, decoded, still)
    for first, end in _runs(still):
        # one that has not ended yet is a prefill's as far as first tokens have come in it
        last = min(end, len(intervals) - 1)
        # where nobody decoded before, a prompt that is computed holds up nobody
        if first and not decoded[first - 1]:
            continue
        if not _is_a_prefill(intervals[first][0], intervals[last][1], intervals[first : last + 1]):
            continue
        for place in range(first, end):
            behind[place] = intervals[place][1].at - intervals[place][0].at
        for place in (first - 1, end):
            if 0 <= place < len(intervals) and not still[place]:
                behind[place] = max(behind[place], _unexplained(intervals[place], decoded[place], usual))
    return behind


def _runs(still: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Where intervals stand still, and where the next one is that doesn't."""
    place = 0
    for stands, group in itertools.groupby(still):
        count = len(list(group))
        if stands:
            yield place, place + count
        place += count


def _is_a_prefill(start: RankSample, end: RankSample, run: Sequence[tuple[RankSample, RankSample]]) -> bool:
    begun = _first_tokens(start, end)
    if begun is None or end.at - start.at > LONGEST_PREFILL_SECONDS:
        return False
    swaps = any(before.swapped != after.swapped for before, after in run)
    return not swaps and begun > 0


def _decoded(before: RankSample, after: RankSample) -> float | None:
    """Tokens that were no request's first."""
    then, now, begun = before.tokens_so_far, after.tokens_so_far, _first_tokens(before, after)
    return None if then is None or now is None or begun is None else max(0.0, now - then - begun)


def _first_tokens(before: RankSample, after: RankSample) -> float | None:
    then, now = before.first_tokens_so_far, after.first_tokens_so_far
    return None if then is None or now is None else now.count - then.count


def _usual_rate(
    intervals: Sequence[tuple[RankSample, RankSample]], decoded: Sequence[float | None], still: Sequence[bool]
) -> float | None:
    """Median tokens a second of intervals that neither stand still nor lie beside one that does."""
    rates = [
        tokens / (after.at - before.at)
        for place, ((before, after), tokens) in enumerate(zip(intervals, decoded, strict=True))
        if tokens and not any(still[max(0, place - 1) : place + 2])
    ]
    return statistics.median(rates) if len(rates) >= ENOUGH_INTERVALS else None


def _unexplained(interval: tuple[RankSample, RankSample], tokens: float | None, usual: float | None) -> float:
    seconds = interval[1].at - interval[0].at
    return 0.0 if usual is None or tokens is None else max(0.0, seconds - tokens / usual)


PREFILL = stateless("prefill", (PREFILL_RATIO, HEAD_OF_LINE, LONG_PROMPTS, PREFIX_HITS), _derive)
