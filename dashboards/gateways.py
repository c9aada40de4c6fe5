"""What gateways tell: of clients, and of what they send on to engines. Which engine, none of them says."""

from __future__ import annotations

from dashboards.context import Context
from dashboards.panels import Visual, time_series
from dashboards.shape import Query, Unit, above
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.gateway import INFLIGHT, PENDING, REJECT_P99, REQUESTS, UPSTREAM_INFLIGHT
from exporter.derive.orphans import ORPHAN_KV, ORPHANS

_SIZE = (8, 8)


def gateways(context: Context, finest: str | None = None) -> tuple[Visual, ...]:
    """All that are read. ``finest``: as of ``time_series``."""
    look, lines = context.look(), context.lines
    gateway = context.legend("gateway")

    def said(what: str) -> str:
        return f"{gateway} {what}"

    return (
        time_series(
            "Answers by outcome",
            Unit.PER_SECOND,
            Query(
                look.rate(REQUESTS).across("sum", "gateway", "outcome"), context.legend("gateway", "outcome")
            ),
            do="client_left and timeout rise: clients wait too long. rejected and overflow: limits at work.",
            size=_SIZE,
            stacked=True,
            finest=finest,
        ),
        time_series(
            "Attempts for an answer",
            Unit.TIMES,
            Query(look.gauge(AMPLIFICATION), gateway),
            Query(look.gauge(REJECT_P99), said("time to refuse, p99"), unit=Unit.SECONDS, right=True),
            do="Clients come again faster than they are answered: docs/runbooks/RetryStorm.md.",
            lines=above(bad=lines.retry_amplification_ratio),
            size=_SIZE,
            finest=finest,
        ),
        time_series(
            "In flight, and held for nobody",
            Unit.COUNT,
            Query(look.gauge(INFLIGHT), said("of clients")),
            Query(look.gauge(UPSTREAM_INFLIGHT), said("to engines")),
            Query(look.gauge(PENDING), said("pending"), dashed=True),
            Query(look.gauge(ORPHANS), said("orphans"), color="red"),
            Query(look.gauge(ORPHAN_KV), said("of KV"), unit=Unit.RATIO, right=True),
            do="Orphans: something swallows disconnects, docs/runbooks/OrphanedKv.md.",
            size=_SIZE,
            finest=finest,
        ),
    )
