"""The KV block pool: how much there is, how much is taken, and blocks that nobody gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exporter.derive.phenomenon import EngineFacts, Phenomenon, stateless
from exporter.sample import RankSample
from exporter.signal import PEAK_SECONDS, Confidence, Kind, Point, Scope, Signal
from exporter.window import LONGEST_GAP_SECONDS, Window

LEAK_AFTER_SECONDS = 120.0
CONTENDED_USAGE = 0.9
"""The incident's line: above it the runbook looks at memory, below 0.8 at compute or network."""

KV_BLOCKS = Signal(
    "kv_blocks",
    Kind.GAUGE,
    Scope.RANK,
    "KV blocks of the rank: total (usable), used, free. Cached blocks that can be evicted count as free.",
    Confidence.MEASURED,
    "used = usage x usable blocks; on vLLM V1 from 0.10.2 one block of the pool is never usable",
    ("kv_usage_ratio", "blocks"),
    labels=("state",),
    source="usage x 255 is a whole number in every scrape of a real pool of 256 blocks",
)
KV_BLOCK_TOKENS = Signal(
    "kv_block_tokens",
    Kind.GAUGE,
    Scope.RANK,
    "Tokens a KV block holds; absent where what the engine tells contradicts itself.",
    Confidence.MEASURED,
    "the engine's configuration",
    ("block_tokens",),
)
KV_USAGE = Signal(
    "kv_usage_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Share of the usable KV blocks that is taken. High usage alone is no fault.",
    Confidence.MEASURED,
    "the engine's gauge",
    ("kv_usage_ratio",),
    window_seconds=0.0,
    peak=True,
)
KV_BYTES_PER_TOKEN = Signal(
    "kv_bytes_per_token",
    Kind.GAUGE,
    Scope.RANK,
    "KV bytes one token takes: in the whole model (scope=model), and on one of its GPUs (scope=gpu).",
    Confidence.MEASURED,
    "model: settings or the model's config.json, else gpu x the GPUs in settings; gpu: pool bytes / (blocks x block "
    "tokens), else what settings say of the model and its GPUs",
    ("kv_pool_bytes", "pool_blocks", "block_tokens", "kv_capacity_tokens"),
    labels=("scope",),
)
KV_LEAK = Signal(
    "kv_leak",
    Kind.GAUGE,
    Scope.RANK,
    "1 when blocks stay taken for 2 min while no sequence runs or waits, else 0; absent while that can't be known yet.",
    Confidence.MEASURED,
    "usage > 0 with nothing running, waiting or swapped, without a break",
    ("kv_usage_ratio", "blocks", "running", "waiting"),
    window_seconds=LEAK_AFTER_SECONDS,
    source="vLLM issues 27073, 46283",
    follows_reads=True,
    is_state=True,
    rests_at_zero=True,
)

IDLE_BLOCKS = 1.0
"""Before 0.10.2 vLLM V1 counts its null block as taken: an idle engine shows one block."""


def used_blocks(sample: RankSample) -> float | None:
    """Usable blocks that are taken."""
    if sample.kv_usage_ratio is None or sample.blocks is None:
        return None
    return sample.kv_usage_ratio * sample.blocks


def block_slots(sample: RankSample) -> float | None:
    """Tokens that taking one more block of the pool makes room for.

    The block size; in a hybrid model, whose groups share the pool, what the engine's own capacity in
    tokens gives.
    """
    if not sample.block_group_tokens and sample.kv_capacity_tokens and sample.blocks:
        return sample.kv_capacity_tokens / sample.blocks
    return sample.block_tokens


def tokens_per_sequence(sample: RankSample) -> float | None:
    """Mean tokens a running sequence holds, its empty tail slots counted; None with none running."""
    used, slots = used_blocks(sample), block_slots(sample)
    if used is None or slots is None or not sample.running:
        return None
    return used * slots / sample.running


def gpu_bytes_per_token(sample: RankSample, facts: EngineFacts) -> float | None:
    """KV bytes a token on one GPU, from the pool's bytes, else from settings."""
    slots = block_slots(sample)
    if sample.kv_pool_bytes and sample.pool_blocks and slots:
        return sample.kv_pool_bytes / (sample.pool_blocks * slots)
    return facts.kv_bytes_per_token_gpu


def replica_bytes_per_token(sample: RankSample, facts: EngineFacts) -> float | None:
    """KV bytes a token over all GPUs of a replica, copies that they keep of the same included.

    What an engine's own byte counters add up. None unless settings tell the GPUs or the model.
    """
    share = gpu_bytes_per_token(sample, facts)
    if share is not None and facts.gpus_per_replica:
        return share * facts.gpus_per_replica
    return facts.kv_bytes_per_token


def model_bytes_per_token(sample: RankSample, facts: EngineFacts) -> float | None:
    """KV bytes a token in the model, copies counted once; None unless settings tell it or its GPUs."""
    if facts.kv_bytes_per_token is not None:
        return facts.kv_bytes_per_token
    return replica_bytes_per_token(sample, facts)


def _derive(window: Window[RankSample], facts: EngineFacts) -> Iterator[Point]:
    now = window.newest
    used = used_blocks(now)
    if now.blocks is not None:
        yield Point(KV_BLOCKS, ("total",), now.blocks)
        if used is not None:
            # whole blocks: the gauge is a quotient of two whole numbers
            whole = min(float(round(used)), now.blocks)
            yield Point(KV_BLOCKS, ("used",), whole)
            yield Point(KV_BLOCKS, ("free",), now.blocks - whole)
    if now.block_tokens is not None:
        yield Point(KV_BLOCK_TOKENS, (), now.block_tokens)
    if now.kv_usage_ratio is not None:
        yield Point(KV_USAGE, (), now.kv_usage_ratio)
    peak = window.peak(lambda sample: sample.kv_usage_ratio, PEAK_SECONDS)
    if peak is not None:
        yield Point(KV_USAGE, (), peak, is_peak=True)
    for scope, size in (
        ("model", model_bytes_per_token(now, facts)),
        ("gpu", gpu_bytes_per_token(now, facts)),
    ):
        if size is not None:
            yield Point(KV_BYTES_PER_TOKEN, (scope,), size)


@dataclass(frozen=True, slots=True)
class LeakState:
    """Since when blocks have been taken by nobody, and whether the moment before it was seen."""

    since: float | None = None
    begin_seen: bool = False


def _leak(window: Window[RankSample], _facts: EngineFacts, state: LeakState) -> tuple[LeakState, list[Point]]:
    now = window.newest
    used = used_blocks(now)
    if now.running is None or now.waiting is None or used is None or now.gauges_stand_when_idle:
        return LeakState(), []
    if used <= IDLE_BLOCKS or now.running or now.waiting or now.swapped:
        return LeakState(begin_seen=True), [Point(KV_LEAK, (), 0.0)]
    silent = len(window.samples) > 1 and now.at - window.samples[-2].at > LONGEST_GAP_SECONDS
    if silent or window.restarted():
        state = LeakState()
    since = now.at if state.since is None else state.since
    state = LeakState(since, state.begin_seen)
    long = now.at - since >= LEAK_AFTER_SECONDS
    # blocks that were taken when the watch began may have been so for long: not yet known is not no
    return state, [Point(KV_LEAK, (), float(long))] if long or state.begin_seen else []


BLOCKS = stateless("blocks", (KV_BLOCKS, KV_BLOCK_TOKENS, KV_USAGE, KV_BYTES_PER_TOKEN), _derive)
LEAK = Phenomenon("leak", (KV_LEAK,), _leak, LeakState())
