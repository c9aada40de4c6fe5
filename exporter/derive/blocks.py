"""The KV block pool: how much there is, how much is taken, and blocks that nobody gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exporter.derive.phenomenon import EngineFacts, Phenomenon, stateless
from exporter.sample import RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

PEAK_SECONDS = 60.0
LEAK_AFTER_SECONDS = 120.0

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
    "KV bytes one token takes: in the whole model, and on one of its GPUs.",
    Confidence.MEASURED,
    "settings, else the model's config.json, else pool bytes / (blocks x block tokens), which is one GPU's",
    ("kv_pool_bytes", "pool_blocks", "block_tokens", "kv_capacity_tokens"),
    labels=("scope",),
)
KV_LEAK = Signal(
    "kv_leak",
    Kind.GAUGE,
    Scope.RANK,
    "1 when blocks stay taken for 2 min while no sequence runs or waits, else 0.",
    Confidence.MEASURED,
    "usage > 0 with nothing running, waiting or swapped, without a break",
    ("kv_usage_ratio", "running", "waiting"),
    window_seconds=LEAK_AFTER_SECONDS,
    source="vLLM issues 27073, 46283",
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


def gpu_bytes_per_token(sample: RankSample, facts: EngineFacts) -> float | None:
    """KV bytes a token on one GPU, from the pool's bytes, else from the model's and the GPU count."""
    slots = block_slots(sample)
    if sample.kv_pool_bytes and sample.pool_blocks and slots:
        return sample.kv_pool_bytes / (sample.pool_blocks * slots)
    if facts.kv_bytes_per_token is not None and facts.gpus_per_replica:
        return facts.kv_bytes_per_token / facts.gpus_per_replica
    return None


def model_bytes_per_token(sample: RankSample, facts: EngineFacts) -> float | None:
    """KV bytes a token over all GPUs of the model; None unless settings tell the model or its GPUs."""
    if facts.kv_bytes_per_token is not None:
        return facts.kv_bytes_per_token
    share = gpu_bytes_per_token(sample, facts)
    return share * facts.gpus_per_replica if share is not None and facts.gpus_per_replica else None


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
    """Since when blocks have been taken by nobody (seconds since the epoch)."""

    since: float | None = None


def _leak(window: Window[RankSample], _facts: EngineFacts, state: LeakState) -> tuple[LeakState, list[Point]]:
    now = window.newest
    used = used_blocks(now)
    if now.running is None or now.waiting is None or used is None:
        return LeakState(), []
    held_by_nobody = used > IDLE_BLOCKS and not (now.running or now.waiting or now.swapped)
    if not held_by_nobody or window.restarted():
        return LeakState(), [Point(KV_LEAK, (), 0.0)]
    since = now.at if state.since is None else state.since
    return LeakState(since), [Point(KV_LEAK, (), float(now.at - since >= LEAK_AFTER_SECONDS))]


BLOCKS = stateless("blocks", (KV_BLOCKS, KV_BLOCK_TOKENS, KV_USAGE, KV_BYTES_PER_TOKEN), _derive)
LEAK = Phenomenon("leak", (KV_LEAK,), _leak, LeakState())
