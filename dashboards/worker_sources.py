"""Rows of the Worker board about what not every sidecar has: KV events, and the probe inside the engine."""

from __future__ import annotations

from dashboards.panels import Visual, time_series
from dashboards.queries import Look
from dashboards.shape import Query, Unit
from dashboards.wording import RANK
from exporter.derive.kv_events import LOST, REMOVALS_RATE, RESTORE_RATIO, STORES_RATE
from exporter.derive.probe import LONGEST_STEP, OVERHEAD, REPEATS, SEQUENCE_BLOCKS, STEPS, TOKENS_BETWEEN


def kv_events(look: Look) -> tuple[Visual, ...]:
    """Churn of the prefix cache."""
    return (
        time_series(
            "Blocks stored and removed a second",
            Unit.PER_SECOND,
            Query(look.gauge(STORES_RATE, peak=True), f"{RANK} stored, {{{{medium}}}}"),
            Query(look.gauge(REMOVALS_RATE, peak=True), f"{RANK} removed, {{{{medium}}}}"),
            do="As many removed as stored: the cache is as large as what asks for it.",
        ),
        time_series(
            "Blocks stored again within a minute",
            Unit.RATIO,
            Query(look.gauge(RESTORE_RATIO), RANK),
            Query(look.rate(LOST), f"{RANK} batches lost", unit=Unit.PER_SECOND, right=True),
            do="High: what is thrown out is asked for again. Where batches are lost it is a floor.",
            most=1,
        ),
    )


def probe(look: Look) -> tuple[Visual, ...]:
    """What only the engine itself can tell."""
    return (
        time_series(
            "Preemptions of sequences that were preempted before",
            Unit.PER_SECOND,
            Query(look.rate(REPEATS), RANK),
            Query(
                look.gauge(TOKENS_BETWEEN, over="min"), f"{RANK} tokens between", unit=Unit.COUNT, right=True
            ),
            do="Exact ping-pong. Few tokens between: clamp what comes.",
            size=(8, 8),
        ),
        time_series(
            "Scheduler",
            Unit.PER_SECOND,
            Query(look.rate(STEPS), f"{RANK} steps"),
            Query(look.gauge(LONGEST_STEP, peak=True), f"{RANK} longest", unit=Unit.SECONDS, right=True),
            do="A long step is a prefill that isn't chunked, or a copy.",
            size=(8, 8),
        ),
        time_series(
            "Blocks that sequences hold, and what the probe costs",
            Unit.COUNT,
            Query(look.gauge(SEQUENCE_BLOCKS), f"{RANK} blocks"),
            Query(look.gauge(OVERHEAD), f"{RANK} of step time", unit=Unit.RATIO, right=True),
            do="More blocks in use than sequences hold: the rest is prefix cache, or leaked.",
            size=(8, 8),
        ),
    )
