"""Tail-block fragmentation: slots of half-filled last blocks that no other sequence can use.

The last block of a sequence holds 1 to B tokens, so 0 to B - 1 of its slots are empty, (B - 1)/2
on average when the fill is uniform (not B/2: a block that exists holds at least one token). The
spread of one sequence is B/sqrt(12); over R independent ones sqrt(R) times that.

Sequences that are shorter than a block fill less of it than that: where the mean one holds m < B/2
tokens, the fill is taken to be uniform from 1 to F = 2m instead, and B - (F + 1)/2 slots are empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from exporter.derive.blocks import block_slots, model_bytes_per_token, used_blocks
from exporter.derive.phenomenon import EngineFacts, stateless
from exporter.derive.request_lengths import mean_held_tokens
from exporter.probe_sample import Probed
from exporter.sample import STALE_AFTER_SECONDS, RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

SCARCE_RATIO = 0.02
"""Under 2 % free the reserve is too small to divide by."""
_PROBED = "block slots less computed tokens, added up over running sequences in a step; all bounds are the same then"
_CHECKED = "real vLLM 0.32 at B=32: 15.48 tokens a sequence, 97 % of steps inside low..high"

TAIL_TOKENS = Signal(
    "tail_fragmentation_tokens",
    Kind.GAUGE,
    Scope.RANK,
    "Empty token slots in the last blocks of running sequences: hard bounds min and max, the expected "
    "value, and low and high, two standard deviations from it.",
    Confidence.ESTIMATE,
    "expected R(B-1)/2, max R(B-1), low/high = expected -+ 2 B/sqrt(12) sqrt(R), summed over KV groups; where requests "
    "of late hold less than half a block, expected R(B-(F+1)/2), -+ 2 F/sqrt(12) sqrt(R), F twice what they hold; "
    "exact where the engine tells its token usage",
    (
        "running",
        "block_tokens",
        "block_group_tokens",
        "kv_token_usage_ratio",
        "request_prompt_tokens",
        "request_generation_tokens",
    ),
    labels=("bound",),
    source=_CHECKED,
    probed=_PROBED,
)
TAIL_BYTES = Signal(
    "tail_fragmentation_bytes",
    Kind.GAUGE,
    Scope.RANK,
    "The same in bytes of the whole model's KV cache. An engine tells its pool on one GPU only: absent unless "
    "settings say kv_bytes_per_token, model_config or tensor_parallel.",
    Confidence.ESTIMATE,
    "tokens x KV bytes a token",
    ("running", "block_tokens", "block_group_tokens"),
    labels=("bound",),
    source=_CHECKED,
    probed="exact tail tokens x KV bytes a token",
)
USED_RATIO = Signal(
    "tail_fragmentation_used_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Expected tail waste as a share of the slots in blocks that are taken.",
    Confidence.ESTIMATE,
    "expected tail tokens / (used blocks x block tokens)",
    ("running", "block_tokens", "block_group_tokens", "kv_usage_ratio", "blocks"),
    probed="exact tail tokens / (used blocks x block tokens)",
)
RESERVE_RATIO = Signal(
    "tail_fragmentation_reserve_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Expected tail waste over the slots that are still free: what the reserve would gain. Absent when less than "
    "2 % is free.",
    Confidence.ESTIMATE,
    "expected tail tokens / (free blocks x block tokens)",
    ("running", "block_tokens", "block_group_tokens", "kv_usage_ratio", "blocks"),
    probed="exact tail tokens / (free blocks x block tokens)",
    above_one=True,
)


class TailWaste(NamedTuple):
    """Empty tail slots, in tokens."""

    min: float
    low: float
    expected: float
    high: float
    max: float


def tail_waste(
    sequences: float, group_block_tokens: tuple[float, ...], held_tokens: float = math.inf
) -> TailWaste:
    """Tail waste of ``sequences`` running sequences, in tokens.

    Each owns one partly filled block in every KV group; ``group_block_tokens`` holds the groups'
    block sizes, ``held_tokens`` is what the mean sequence holds. Raises ValueError on a block of less
    than one token or fewer than 0 sequences.
    """
    if sequences < 0 or any(size < 1 for size in group_block_tokens):
        raise ValueError(f"no tail waste of {sequences} sequences in blocks of {group_block_tokens} tokens")
    most = sequences * sum(size - 1 for size in group_block_tokens)
    fills = [min(size, max(1.0, 2 * held_tokens)) for size in group_block_tokens]
    expected = sequences * sum(
        size - (fill + 1) / 2 for size, fill in zip(group_block_tokens, fills, strict=True)
    )
    # the fill of a block is uniform over F values; F/sqrt(12) bounds its standard deviation
    spread = 2 * math.sqrt(sequences * sum(fill * fill for fill in fills) / 12)
    return TailWaste(0.0, max(0.0, expected - spread), expected, min(most, expected + spread), most)


def _exactly(tokens: float) -> TailWaste:
    return TailWaste(tokens, tokens, tokens, tokens, tokens)


def _waste_now(window: Window[RankSample], facts: EngineFacts) -> TailWaste | None:
    sample = window.newest
    used, slots = used_blocks(sample), block_slots(sample)
    if sample.kv_token_usage_ratio is not None and used is not None and sample.blocks and slots:
        told = (used - sample.kv_token_usage_ratio * sample.blocks) * slots
        return _exactly(max(0.0, told))
    groups = facts.block_group_tokens or sample.block_group_tokens
    if not groups and sample.block_tokens is not None and sample.kv_capacity_tokens is None:
        # an engine that tells its capacity and no groups has several, of unknown sizes
        groups = (sample.block_tokens,)
    if sample.running is None or not groups:
        return None
    held = mean_held_tokens(window)
    return tail_waste(sample.running, groups, math.inf if held is None else held)


def _derive(window: Window[RankSample], facts: EngineFacts) -> Iterator[Point]:
    waste = _waste_now(window, facts)
    if waste is not None:
        yield from _points(waste, window.newest, facts)


def _derive_probed(seen: Probed, facts: EngineFacts) -> Iterator[Point]:
    """Exact, for as long as the step they were added up in isn't too long ago."""
    now = seen.probe.newest
    if now.tail_tokens is not None and now.age_seconds <= STALE_AFTER_SECONDS:
        yield from _points(_exactly(now.tail_tokens), seen.rank, facts)


def _points(waste: TailWaste, now: RankSample | None, facts: EngineFacts) -> Iterator[Point]:
    for bound, tokens in waste._asdict().items():
        yield Point(TAIL_TOKENS, (bound,), tokens)
    if now is None:
        return
    size = model_bytes_per_token(now, facts)
    if size is not None:
        for bound, tokens in waste._asdict().items():
            yield Point(TAIL_BYTES, (bound,), tokens * size)
    used, slots = used_blocks(now), block_slots(now)
    if used is None or now.blocks is None or slots is None:
        return
    if used > 0:
        yield Point(USED_RATIO, (), min(1.0, waste.expected / (used * slots)))
    free = now.blocks - used
    if free >= SCARCE_RATIO * now.blocks > 0:
        yield Point(RESERVE_RATIO, (), waste.expected / (free * slots))


FRAGMENTATION = stateless("fragmentation", (TAIL_TOKENS, TAIL_BYTES, USED_RATIO, RESERVE_RATIO), _derive)
PROBED_FRAGMENTATION = stateless("probed_fragmentation", FRAGMENTATION.signals, _derive_probed)
