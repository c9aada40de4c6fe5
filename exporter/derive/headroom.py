"""How far the KV pool is from running dry: by trend, by what was already asked for, in tokens."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.derive.blocks import CONTENDED_USAGE, block_slots, used_blocks
from exporter.derive.fragmentation import SCARCE_RATIO
from exporter.derive.phenomenon import EngineFacts, stateless
from exporter.derive.request_lengths import MIX_SECONDS, mean_remaining, recent_requests
from exporter.sample import RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

TREND_SECONDS = 60.0
TREND_FROM_USAGE = 0.5
"""Below this a forecast cries wolf (measured on a public run of a real GPU)."""

EXHAUSTION = Signal(
    "kv_exhaustion_seconds",
    Kind.GAUGE,
    Scope.RANK,
    "Seconds until the pool is empty if the trend of the last minute holds; 0 when it is. A warning of slow ramps: "
    "a burst fills the pool between two scrapes.",
    Confidence.ESTIMATE,
    "free blocks / Theil-Sen slope of used blocks over 60 s; absent below half usage or without a rise; 0 at 2 % free, "
    "or while requests wait for capacity above 90 %",
    ("kv_usage_ratio", "blocks", "waiting", "waiting_by_reason"),
    window_seconds=TREND_SECONDS,
)
DEMAND = Signal(
    "kv_demand_ratio",
    Kind.GAUGE,
    Scope.RANK,
    "KV blocks already asked for over those there are: taken, here or by swapped sequences on the host, plus what "
    "waiting prompts and the rest of begun answers will need. Above 1 the pool can't hold what was accepted.",
    Confidence.ESTIMATE,
    "(used + taken in the swap pool + waiting x mean prompt blocks + (running + swapped) x mean remaining blocks) / "
    "usable blocks; means over requests that finished in the last 5 min, or, while those are below 20, since the "
    "engine started",
    (
        "kv_usage_ratio",
        "blocks",
        "waiting",
        "running",
        "swapped",
        "swap_tier_usage_ratio",
        "swap_tier_blocks",
        "block_tokens",
        "request_prompt_tokens",
        "request_generation_tokens",
    ),
    window_seconds=MIX_SECONDS,
    above_one=True,
)
HEADROOM = Signal(
    "kv_headroom_tokens",
    Kind.GAUGE,
    Scope.RANK,
    "Free token slots less what running sequences are still to generate; below 0 somebody will be preempted.",
    Confidence.ESTIMATE,
    "free blocks x block tokens - running x mean remaining tokens, over the same requests; biased to those that finish",
    ("kv_usage_ratio", "blocks", "running", "block_tokens", "request_generation_tokens"),
    window_seconds=MIX_SECONDS,
)


def _derive(window: Window[RankSample], _facts: EngineFacts) -> Iterator[Point]:
    now = window.newest
    used = used_blocks(now)
    if used is None or not now.blocks or now.kv_usage_ratio is None:
        return
    free = now.blocks - used
    seconds = _exhaustion(window, now, free)
    if seconds is not None:
        yield Point(EXHAUSTION, (), seconds)
    size, running = block_slots(now), now.running
    if size is None or running is None:
        return
    answers = recent_requests(window, lambda sample: sample.request_generation_tokens)
    remaining = mean_remaining(answers) if answers is not None else None
    if remaining is None:
        return
    yield Point(HEADROOM, (), free * size - running * remaining)
    prompts = recent_requests(window, lambda sample: sample.request_prompt_tokens)
    if prompts is None or prompts.mean is None or now.waiting is None:
        return
    # a prompt's last block is half empty on average, and a short prompt takes a block too
    prompt_blocks = max(1.0, (prompts.mean + max(0.0, size - 1) / 2) / size)
    swapped = now.swapped or 0.0
    wanted = used + now.waiting * prompt_blocks + (running + swapped) * remaining / size
    wanted += _blocks_on_the_host(now, swapped * prompt_blocks)
    yield Point(DEMAND, (), wanted / now.blocks)


def _blocks_on_the_host(now: RankSample, at_least: float) -> float:
    """Blocks that swapped sequences will take on the GPU again: what the pool holds, or ``at_least`` so many."""
    if not now.swapped:
        return 0.0  # what a tier keeps of nobody is a cache, and asks for nothing
    if now.swap_tier_usage_ratio is None or now.swap_tier_blocks is None:
        return at_least
    return now.swap_tier_usage_ratio * now.swap_tier_blocks


def _exhaustion(window: Window[RankSample], now: RankSample, free: float) -> float | None:
    usage, blocks = now.kv_usage_ratio, now.blocks
    if usage is None or blocks is None or usage < TREND_FROM_USAGE:
        return None
    if free <= SCARCE_RATIO * blocks or (now.waiting_for_capacity and usage > CONTENDED_USAGE):
        return 0.0
    slope = window.slope(used_blocks, TREND_SECONDS)
    return free / slope if slope is not None and slope > 0 else None


HEADROOM_PHENOMENON = stateless("headroom", (EXHAUSTION, DEMAND, HEADROOM), _derive)
