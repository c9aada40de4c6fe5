"""KV events: blocks that are stored and removed, and those that come back.

Events carry no request ids: they tell that the cache churns, not whose blocks do. A rank's values are there
while its publisher is connected: silence on an open connection is an engine that stores and removes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from exporter.derive.phenomenon import EngineFacts, stateless
from exporter.kv_events.tally import MOST_REMEMBERED, RESTORE_SECONDS
from exporter.kv_events_sample import KvEventsSample
from exporter.signal import PEAK_SECONDS, Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

RATE_SECONDS = 10.0

STORES = Signal(
    "kv_block_stores_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Full KV blocks stored, by medium (gpu, cpu, storage, other). Those on cpu were copied out of the GPU; what is "
    "loaded from there again is a store on gpu like any other.",
    Confidence.MEASURED,
    "block hashes of BlockStored events, counted from 0 since the sidecar started",
    ("stores_total",),
    labels=("rank", "medium"),
    source="offload capture: 3804 blocks stored to the CPU tier, as many as the engine's byte counter says",
)
REMOVALS = Signal(
    "kv_block_removals_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Full KV blocks removed, by medium: evicted to make room. A cache cleared as a whole is counted apart.",
    Confidence.MEASURED,
    "block hashes of BlockRemoved events, counted from 0 since the sidecar started",
    ("removals_total",),
    labels=("rank", "medium"),
)
STORES_RATE = Signal(
    "kv_block_stores_per_second",
    Kind.GAUGE,
    Scope.ENGINE,
    "Full KV blocks stored a second over the trailing 10 s, by medium.",
    Confidence.MEASURED,
    "rise over time",
    ("stores_total",),
    labels=("rank", "medium"),
    window_seconds=RATE_SECONDS,
    peak=True,
)
REMOVALS_RATE = Signal(
    "kv_block_removals_per_second",
    Kind.GAUGE,
    Scope.ENGINE,
    "Full KV blocks removed a second over the trailing 10 s, by medium.",
    Confidence.MEASURED,
    "rise over time",
    ("removals_total",),
    labels=("rank", "medium"),
    window_seconds=RATE_SECONDS,
    peak=True,
)
RESTORE_RATIO = Signal(
    "kv_block_restore_ratio",
    Kind.GAUGE,
    Scope.ENGINE,
    "Share of the blocks stored on the GPU in the trailing 60 s that had been removed from it at most 60 s before: "
    "work the cache did twice. Cache churn, not ping-pong of sequences; 0.2 to 0.3 is usual under contention.",
    Confidence.MEASURED,
    f"restores / stores on the GPU; absent when nothing was stored. At least the {MOST_REMEMBERED // 2:,} blocks "
    "removed last are remembered; a cache that removes more in 60 s can read too low",
    ("restores_total", "stores_total"),
    labels=("rank",),
    source="vLLM 0.32 captures: 0.27 and 0.30 over a whole run, by a second count that remembers all",
    window_seconds=RESTORE_SECONDS,
)
CLEARS = Signal(
    "kv_cache_clears_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Times the prefix cache was cleared as a whole, as a reset of it and a change of weights do.",
    Confidence.MEASURED,
    "AllBlocksCleared events, counted from 0 since the sidecar started",
    ("clears_total",),
    labels=("rank",),
)
BATCHES = Signal(
    "kv_event_batches_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Batches of KV events that were heard; an engine publishes at most one for each step of its scheduler.",
    Confidence.MEASURED,
    "counted by the subscriber, each once, replays included",
    ("batches_total",),
    labels=("rank",),
)
LOST = Signal(
    "kv_event_batches_lost_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Batches that were published and never came, replay included; how many events they held nobody knows. All "
    "counts of blocks are too low by those. It rises where the sidecar is too slow or the network breaks.",
    Confidence.MEASURED,
    "gaps in the publisher's numbers that no replay filled, told by the next batch that comes",
    ("lost_batches_total",),
    labels=("rank",),
)
UNKNOWN = Signal(
    "kv_events_unknown_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Events of a type, or with contents, that this release can't read; they are left out.",
    Confidence.MEASURED,
    "counted by the subscriber",
    ("unknown_events_total",),
    labels=("rank",),
)
BROKEN = Signal(
    "kv_event_batches_broken_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Messages that hold no batch of KV events; they are left out.",
    Confidence.MEASURED,
    "counted by the subscriber",
    ("broken_batches_total",),
    labels=("rank",),
)

Counter = Callable[[KvEventsSample], float]


def stored(medium: str) -> Counter:
    """The counter of blocks stored there."""
    return lambda sample: sample.stores_on(medium)


def removed(medium: str) -> Counter:
    """The counter of blocks removed from there."""
    return lambda sample: sample.removals_from(medium)


def _points(window: Window[KvEventsSample], _facts: EngineFacts) -> Iterator[Point]:
    now = window.newest
    for medium, blocks in now.stores_total:
        yield Point(STORES, (now.rank, medium), float(blocks))
        yield from _rate(window, STORES_RATE, stored(medium), medium)
    for medium, blocks in now.removals_total:
        yield Point(REMOVALS, (now.rank, medium), float(blocks))
        yield from _rate(window, REMOVALS_RATE, removed(medium), medium)
    for signal, count in (
        (CLEARS, now.clears_total),
        (BATCHES, now.batches_total),
        (LOST, now.lost_batches_total),
        (UNKNOWN, now.unknown_events_total),
        (BROKEN, now.broken_batches_total),
    ):
        yield Point(signal, (now.rank,), float(count))
    restores = window.delta(lambda sample: float(sample.restores_total), RESTORE_SECONDS)
    stores = window.delta(stored("gpu"), RESTORE_SECONDS)
    if restores is not None and stores is not None and stores.increase > 0:
        yield Point(RESTORE_RATIO, (now.rank,), restores.increase / stores.increase)


def _rate(window: Window[KvEventsSample], signal: Signal, counter: Counter, medium: str) -> Iterator[Point]:
    labels = (window.newest.rank, medium)
    rise = window.delta(counter, RATE_SECONDS)
    if rise is not None:
        yield Point(signal, labels, rise.per_second)
    peak = window.peak_rate(counter, PEAK_SECONDS)
    if peak is not None:
        yield Point(signal, labels, peak, is_peak=True)


KV_EVENTS = stateless(
    "kv_events",
    (STORES, REMOVALS, STORES_RATE, REMOVALS_RATE, RESTORE_RATIO, CLEARS, BATCHES, LOST, UNKNOWN, BROKEN),
    _points,
)
