"""KV blocks moved between the GPU and a tier below it: V0's swap pool, or the offload of later engines.

``in`` is towards the GPU, ``out`` away from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from exporter.derive.blocks import (
    block_slots,
    gpu_bytes_per_token,
    replica_bytes_per_token,
    tokens_per_sequence,
)
from exporter.derive.phenomenon import EngineFacts, Phenomenon, stateless
from exporter.sample import RankSample
from exporter.signal import PEAK_SECONDS, Confidence, Kind, Point, Scope, Signal
from exporter.window import Total, Window

RATE_SECONDS = 10.0
RECIPROCITY_SECONDS = 60.0

SWAP_BYTES = Signal(
    "swap_bytes_total",
    Kind.COUNTER,
    Scope.RANK,
    "KV bytes moved into (in) and out of (out) the GPU by swap or offload. vLLM V0 counts none.",
    Confidence.MEASURED,
    "rises of the engine's counters, summed from 0",
    ("swap_in_bytes_total", "swap_out_bytes_total"),
    labels=("direction",),
)
SWAP_BLOCKS = Signal(
    "swap_blocks_total",
    Kind.COUNTER,
    Scope.RANK,
    "KV blocks moved into and out of the GPU by swap or offload.",
    Confidence.MEASURED,
    "rises of the engine's block counters, else of its byte counters over the bytes of a block on all GPUs of the "
    "replica, which settings have to tell (tensor_parallel, or kv_bytes_per_token)",
    (
        "swap_in_blocks_total",
        "swap_out_blocks_total",
        "swap_in_bytes_total",
        "swap_out_bytes_total",
        "block_tokens",
    ),
    labels=("direction",),
    source="offload capture: 62.3 MB stored = 3804 blocks, as many as its KV events say",
)
SWAP_BYTES_RATE = Signal(
    "swap_bytes_per_second",
    Kind.GAUGE,
    Scope.RANK,
    "KV bytes a second moved by swap or offload over the trailing 10 s.",
    Confidence.MEASURED,
    "rise over time",
    ("swap_in_bytes_total", "swap_out_bytes_total"),
    labels=("direction",),
    window_seconds=RATE_SECONDS,
    peak=True,
)
SWAP_BLOCKS_RATE = Signal(
    "swap_blocks_per_second",
    Kind.GAUGE,
    Scope.RANK,
    "KV blocks a second moved by swap or offload over the trailing 10 s.",
    Confidence.MEASURED,
    "rise over time",
    (
        "swap_in_blocks_total",
        "swap_out_blocks_total",
        "swap_in_bytes_total",
        "swap_out_bytes_total",
        "block_tokens",
    ),
    labels=("direction",),
    window_seconds=RATE_SECONDS,
    peak=True,
)
SWAP_ESTIMATE = Signal(
    "swap_bytes_estimate_total",
    Kind.COUNTER,
    Scope.RANK,
    "KV bytes swapped out by vLLM V0, which counts none: the same again comes back. Exists once sequences were "
    "seen swapped.",
    Confidence.ESTIMATE,
    "preemptions x mean blocks a sequence x block tokens x KV bytes a token",
    ("swapped", "preemptions_total", "kv_usage_ratio", "blocks", "running", "block_tokens"),
    source="real vLLM 0.8.5: rises of the CPU pool's gauge see only 14 % of what moved",
)
SWAP_TIER_BYTES = Signal(
    "swap_tier_bytes",
    Kind.GAUGE,
    Scope.RANK,
    "Size of the tier below the GPU, as configured.",
    Confidence.MEASURED,
    "the engine's configuration",
    ("swap_tier_bytes",),
)
SWAP_TIER_ENABLED = Signal(
    "swap_tier_enabled",
    Kind.GAUGE,
    Scope.RANK,
    "1 where KV can leave the GPU for a tier below it, 0 where it can't; absent where the engine doesn't tell.",
    Confidence.MEASURED,
    "V0: a CPU pool of blocks; later: offload series or configuration. 0 only once prefix lookups happened and none "
    "of them went to a tier beyond the GPU",
    ("swap_mode", "swap_tier_bytes", "swap_tier_blocks", "external_queries_total", "prefix_queries_total"),
    is_state=True,
)
SWAP_TIER_USED = Signal(
    "swap_tier_used_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Share of the tier that is taken. vLLM V0 dies when its CPU pool is full.",
    Confidence.MEASURED,
    "the engine's gauge, where it means occupancy",
    ("swap_tier_usage_ratio",),
    source="vLLM issues 546, 588",
)
SWAPPED = Signal(
    "swapped_sequences",
    Kind.GAUGE,
    Scope.RANK,
    "Sequences whose blocks are in the swap pool.",
    Confidence.MEASURED,
    "the engine's gauge (vLLM to 0.9.0)",
    ("swapped",),
    peak=True,
    rests_at_zero=True,
)
RECIPROCITY = Signal(
    "transfer_reciprocity_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "Smaller over larger of the bytes moved in and out in the trailing 60 s: near 1 when what leaves comes straight "
    "back, near 0 for a write-through cache.",
    Confidence.MEASURED,
    "min(in, out) / max(in, out); absent when nothing moved",
    ("swap_in_bytes_total", "swap_out_bytes_total"),
    window_seconds=RECIPROCITY_SECONDS,
)

Counter = Callable[[RankSample], float | None]


def _bytes_in(sample: RankSample) -> float | None:
    return sample.swap_in_bytes_total


def _bytes_out(sample: RankSample) -> float | None:
    return sample.swap_out_bytes_total


BYTE_COUNTERS: tuple[tuple[str, Counter], ...] = (("in", _bytes_in), ("out", _bytes_out))


def _block_counters(facts: EngineFacts) -> tuple[tuple[str, Counter], ...]:
    """Blocks moved: counted by the engine, else bytes, which it adds up over its GPUs, over a block's."""

    def blocks(counted: Counter, moved_bytes: Counter) -> Counter:
        def read(sample: RankSample) -> float | None:
            told = counted(sample)
            if told is not None:
                return told
            moved, size = moved_bytes(sample), replica_bytes_per_token(sample, facts)
            slots = block_slots(sample)
            return moved / (size * slots) if moved is not None and size and slots else None

        return read

    return (
        ("in", blocks(lambda sample: sample.swap_in_blocks_total, _bytes_in)),
        ("out", blocks(lambda sample: sample.swap_out_blocks_total, _bytes_out)),
    )


def tier_enabled(sample: RankSample) -> bool | None:
    """Whether KV can leave the GPU; None where the engine doesn't tell."""
    if sample.swap_mode is not None or sample.swap_tier_bytes or sample.swap_tier_blocks:
        return True
    if sample.swap_tier_blocks == 0 and sample.swapped is not None:
        return False
    looked_up = sample.prefix_queries_total
    # a connector is asked at every lookup: lookups without one mean that there is none
    return False if looked_up and sample.external_queries_total == 0 else None


def _tier(window: Window[RankSample], _facts: EngineFacts) -> Iterator[Point]:
    now = window.newest
    if now.swap_tier_bytes is not None:
        yield Point(SWAP_TIER_BYTES, (), now.swap_tier_bytes)
    enabled = tier_enabled(now)
    if enabled is not None:
        yield Point(SWAP_TIER_ENABLED, (), float(enabled))
    if now.swap_tier_usage_ratio is not None:
        yield Point(SWAP_TIER_USED, (), now.swap_tier_usage_ratio)
    if now.swapped is not None:
        yield Point(SWAPPED, (), now.swapped)
        peak = window.peak(lambda sample: sample.swapped, PEAK_SECONDS)
        yield Point(SWAPPED, (), now.swapped if peak is None else peak, is_peak=True)


def _rates(window: Window[RankSample], facts: EngineFacts) -> Iterator[Point]:
    for signal, counters in ((SWAP_BYTES_RATE, BYTE_COUNTERS), (SWAP_BLOCKS_RATE, _block_counters(facts))):
        for direction, counter in counters:
            if counter(window.newest) is None:
                continue
            rise = window.delta(counter, RATE_SECONDS)
            if rise is not None:
                yield Point(signal, (direction,), rise.per_second)
            peak = window.peak_rate(counter, PEAK_SECONDS)
            if peak is not None:
                yield Point(signal, (direction,), peak, is_peak=True)
    moved_in = window.delta(_bytes_in, RECIPROCITY_SECONDS)
    moved_out = window.delta(_bytes_out, RECIPROCITY_SECONDS)
    if moved_in is not None and moved_out is not None:
        more = max(moved_in.increase, moved_out.increase)
        if more > 0:
            yield Point(RECIPROCITY, (), min(moved_in.increase, moved_out.increase) / more)


@dataclass(frozen=True, slots=True)
class Moved:
    """Blocks moved one way so far, None while neither they nor their bytes are known.

    Each rise is the engine's own count where it has one, else the rise in bytes over a block's size then.
    """

    blocks: float | None = None
    counted: Total = Total()

    def fed(self, count: float | None, moved_bytes: float, size: float | None, *, restarted: bool) -> Moved:
        """After a new reading: the engine's counter, the rise in bytes, and a block's bytes now."""
        counted = self.counted.fed(count, restarted=restarted)
        if counted.known:
            # the rise first: it is never negative, so that no rounding lets the sum fall
            return Moved((self.blocks or 0.0) + (counted.value - self.counted.value), counted)
        if size:
            return Moved((self.blocks or 0.0) + moved_bytes / size, counted)
        return Moved(self.blocks, counted)


@dataclass(frozen=True, slots=True)
class SwapState:
    """Totals of one rank, by direction."""

    bytes_in: Total = Total()
    bytes_out: Total = Total()
    blocks_in: Moved = Moved()
    blocks_out: Moved = Moved()
    preemptions: Total = Total()
    estimate_bytes: float = 0.0
    swapping_seen: bool = False
    size_known: bool = False


def _totals(
    window: Window[RankSample], facts: EngineFacts, state: SwapState
) -> tuple[SwapState, list[Point]]:
    now, restarted = window.newest, window.restarted()
    preemptions = state.preemptions.fed(now.preemptions_total, restarted=restarted)
    bytes_in = state.bytes_in.fed(now.swap_in_bytes_total, restarted=restarted)
    bytes_out = state.bytes_out.fed(now.swap_out_bytes_total, restarted=restarted)
    token_bytes, slots = replica_bytes_per_token(now, facts), block_slots(now)
    size = token_bytes * slots if token_bytes and slots else None
    bytes_each = _sequence_bytes(now, facts)
    rise = preemptions.value - state.preemptions.value
    swapping = state.swapping_seen or swaps(now)
    # what was preempted before the first swap was seen was recomputed
    swapped_bytes = rise * bytes_each if swapping and bytes_each is not None else 0.0
    state = SwapState(
        bytes_in,
        bytes_out,
        state.blocks_in.fed(
            now.swap_in_blocks_total,
            bytes_in.value - state.bytes_in.value,
            size if bytes_in.known else None,
            restarted=restarted,
        ),
        state.blocks_out.fed(
            now.swap_out_blocks_total,
            bytes_out.value - state.bytes_out.value,
            size if bytes_out.known else None,
            restarted=restarted,
        ),
        preemptions,
        state.estimate_bytes + swapped_bytes,
        swapping,
        state.size_known or bytes_each is not None,
    )
    told = (
        (SWAP_BYTES, "in", bytes_in.value if bytes_in.known else None),
        (SWAP_BYTES, "out", bytes_out.value if bytes_out.known else None),
        (SWAP_BLOCKS, "in", state.blocks_in.blocks),
        (SWAP_BLOCKS, "out", state.blocks_out.blocks),
    )
    points = [Point(signal, (direction,), value) for signal, direction, value in told if value is not None]
    if state.swapping_seen and state.size_known:
        points.append(Point(SWAP_ESTIMATE, (), state.estimate_bytes))
    return state, points


def swaps(sample: RankSample) -> bool:
    """V0 tells no preemption mode: a sequence or a block in its CPU pool is what proves swapping."""
    return sample.swapped is not None and bool(sample.swapped or sample.swap_tier_usage_ratio)


def _sequence_bytes(sample: RankSample, facts: EngineFacts) -> float | None:
    """KV bytes of the mean running sequence, over all GPUs where they are known, else on one."""
    size = replica_bytes_per_token(sample, facts)
    if size is None:
        size = gpu_bytes_per_token(sample, facts)
    tokens = tokens_per_sequence(sample)
    return tokens * size if tokens is not None and size is not None else None


TIER = stateless("swap_tier", (SWAP_TIER_BYTES, SWAP_TIER_ENABLED, SWAP_TIER_USED, SWAPPED), _tier)
RATES = stateless("swap_rates", (SWAP_BYTES_RATE, SWAP_BLOCKS_RATE, RECIPROCITY), _rates)
TOTALS = Phenomenon("swap_totals", (SWAP_BYTES, SWAP_BLOCKS, SWAP_ESTIMATE), _totals, SwapState())
