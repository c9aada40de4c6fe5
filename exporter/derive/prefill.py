"""Prompts: their share of the work, whom they hold up, how long they are, what the prefix cache saves."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.derive.phenomenon import EngineFacts, stateless
from exporter.sample import RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

MIX_SECONDS = 30.0
BLOCKED_SECONDS = 60.0
PROMPT_SECONDS = 300.0
QUEUE_MOVES_SECONDS = 5.0
"""A queue of which somebody began this lately moves, as one before a full batch does."""
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
)
HEAD_OF_LINE = Signal(
    "head_of_line_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Share of the trailing 60 s in which somebody stood behind somebody else: sequences waiting at low KV usage, or no "
    "token for running sequences while prompts were taken in.",
    Confidence.ESTIMATE,
    "time with waiting (for capacity, where told) > 0 at usage below 0.7 and no request begun for 5 s, or with prompt "
    "tokens and no generated ones",
    (
        "waiting",
        "waiting_by_reason",
        "running",
        "kv_usage_ratio",
        "generation_tokens_total",
        "prompt_tokens_total",
        "time_to_first_token",
    ),
    window_seconds=BLOCKED_SECONDS,
    source="vLLM issues 31731, 35852, 11517",
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
    for before, after in window.intervals(BLOCKED_SECONDS):
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
        if (queues and not moves) or _behind_a_prefill(before, after):
            blocked += seconds
    return blocked / covered if covered > 0 else None


def _queues_at_low_usage(sample: RankSample) -> bool:
    usage = sample.kv_usage_ratio
    return bool(sample.waiting_for_capacity) and usage is not None and usage < LOW_USAGE


def _admits(before: RankSample, after: RankSample) -> bool:
    """Whether a request began."""
    then, now = before.first_tokens_so_far, after.first_tokens_so_far
    return then is not None and now is not None and now.count > then.count


def _behind_a_prefill(before: RankSample, after: RankSample) -> bool:
    then, now = before.tokens_so_far, after.tokens_so_far
    took, takes = before.prompt_tokens_so_far, after.prompt_tokens_so_far
    if then is None or now is None or took is None or takes is None:
        return False
    return bool(before.running) and now == then and takes > took


PREFILL = stateless("prefill", (PREFILL_RATIO, HEAD_OF_LINE, LONG_PROMPTS, PREFIX_HITS), _derive)
