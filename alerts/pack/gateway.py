"""The gateway: retries, orphans, rejections, breakers."""

from __future__ import annotations

from alerts.alert import Alert, Expression, Severity
from alerts.causes import Cause
from alerts.conditions import Compare, Reading, Rendering, number
from alerts.pack.explaining import FLEET_WIDE, STUCK_WIDE
from alerts.pack.promql import by, gauge, rate
from alerts.pack.wording import A_GATEWAY, DURATION, NUMBER, PERCENT
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.blocks import KV_USAGE
from exporter.derive.gateway import BREAKER_OPEN_RATIO, REJECT_P99, REQUESTS
from exporter.derive.orphans import ORPHAN_KV

_GATEWAY = AMPLIFICATION.scope.labels
_WINDOW = "2m"
MOST_RANKS = 0.9
"""Share of ranks that have room: alert and cause of a gateway that is too tight agree on it."""
_REJECTED, _OVERFLOW, _LEFT, _TIMEOUT = (
    (("outcome", name),) for name in ("rejected", "overflow", "client_left", "timeout")
)


def _storm(rendering: Rendering) -> str:
    """Amplified by those that gave up waiting, rather than by those that were turned away; a few are no storm."""
    on = by(rendering, _GATEWAY)
    line = rendering.thresholds.retry_amplification_ratio
    amplified = f"max by ({on}) ({gauge(rendering, AMPLIFICATION)}) > {number(line)}"
    every = rate(rendering, REQUESTS, _WINDOW, _GATEWAY)
    left, late, rejected = (
        f"({rate(rendering, REQUESTS, _WINDOW, _GATEWAY, outcome)} or {every} * 0)"
        for outcome in (_LEFT, _TIMEOUT, _REJECTED)
    )
    gave_up, many = f"{left} + {late}", number(rendering.thresholds.retry_storm_per_second)
    return f"({amplified})\nand on ({on})\n({gave_up} > {rejected})\nand on ({on})\n({gave_up} > {many})"


RETRY_STORM = Alert(
    "RetryStorm",
    Severity.PAGE,
    Cause.RETRY_STORM,
    Expression(_storm, _GATEWAY),
    f"{A_GATEWAY}: {NUMBER} attempts for each answer",
    "Clients give up waiting and come again with the same prompts: most of the work is for nobody.",
    for_seconds=180,  # whatever makes clients wait has its own alert by then
    keep_firing_seconds=180,
    consequence_of=FLEET_WIDE,
    brought_by=("OrphanedKv", "PrefixHitsCollapsed"),
)
ORPHANED_KV = Alert(
    "OrphanedKv",
    Severity.WARNING,
    Cause.ORPHANS,
    Compare(Reading(ORPHAN_KV), ">", "orphan_kv_ratio"),
    f"{A_GATEWAY}: {PERCENT} of KV blocks belong to clients that are gone",
    "Engines go on with requests that nobody waits for any more: something between swallows disconnects.",
    for_seconds=30,
    consequence_of=STUCK_WIDE,
)


def _turned_away(rendering: Rendering, every: str) -> str:
    rejected, overflow = (
        rate(rendering, REQUESTS, _WINDOW, _GATEWAY, outcome) for outcome in (_REJECTED, _OVERFLOW)
    )
    return f"(({rejected} or {every} * 0) + ({overflow} or {every} * 0))"


def _rejecting(rendering: Rendering) -> str:
    every = rate(rendering, REQUESTS, _WINDOW, _GATEWAY)
    line = rendering.thresholds.gateway_rejected_ratio
    return f"{_turned_away(rendering, every)} / ({every} > 0) > {number(line)}"


def _rejecting_with_room(rendering: Rendering) -> str:
    """And letting through a fraction of what it did, though as much is asked for.

    Admission control at a peak lets through more than ever; at night a few that are refused are many of few. A rank in
    ten may be full: in a fleet of a thousand one always is, and turning everybody away doesn't help it.
    """
    lines = rendering.thresholds
    cluster, on = ", ".join(rendering.cluster_labels), by(rendering, _GATEWAY)
    each = f"max by ({by(rendering, KV_USAGE.scope.labels)}) ({gauge(rendering, KV_USAGE)})"
    room = f"quantile by ({cluster}) ({MOST_RANKS}, {each}) < {number(lines.kv_usage_calm_ratio)}"
    every = rate(rendering, REQUESTS, _WINDOW, _GATEWAY)
    let_through = f"{every} - {_turned_away(rendering, every)}"
    half = f"{number(lines.gateway_let_through_ratio)} * max_over_time(({let_through})[1h:1m])"
    parts = ((on, f"({let_through}) < {half}"), (on, f"{every} > {half}"))
    joined = "".join(f"\nand on ({labels})\n({part})" for labels, part in ((cluster, room), *parts))
    return f"({_rejecting(rendering)}){joined}"


GATEWAY_TOO_TIGHT = Alert(
    "GatewayTooTight",
    Severity.PAGE,
    Cause.GATEWAY_TOO_TIGHT,
    Expression(_rejecting_with_room, _GATEWAY),
    f"{A_GATEWAY} turns away {PERCENT} of requests while engines have room",
    "Users are refused though nine of ten KV pools are nowhere near full. As much is asked for as before and half of it"
    " gets through: the limit is below what the fleet carries.",
)
GATEWAY_REJECTING = Alert(
    "GatewayRejecting",
    Severity.WARNING,
    Cause.OVERLOAD,
    Expression(_rejecting, _GATEWAY),
    f"{A_GATEWAY} turns away {PERCENT} of requests",
    "More is asked for than is let through. Where engines are full that is what the limit is for.",
    for_seconds=120,
    quiet_under=("GatewayTooTight", "GatewayBreakerOpen"),
)

GATEWAY_BREAKER_OPEN = Alert(
    "GatewayBreakerOpen",
    Severity.WARNING,
    Cause.GATEWAY_BREAKER,
    Compare(Reading(BREAKER_OPEN_RATIO), ">", "breaker_open_ratio"),
    "{{ $labels.gateway }}: a circuit breaker is open",
    "As many requests are in flight as the gateway allows: whatever comes beyond that is turned away at once.",
)
GATEWAY_REJECTS_SLOWLY = Alert(
    "GatewayRejectsSlowly",
    Severity.WARNING,
    Cause.GATEWAY_SLOW,
    Compare(Reading(REJECT_P99), ">", "gateway_reject_seconds"),
    f"{A_GATEWAY} takes {DURATION} to turn a request away",
    "Refusing is to be cheap and quick: what waits to be refused holds connections, and clients can't go elsewhere.",
    for_seconds=120,
)
GATEWAY = (
    RETRY_STORM,
    ORPHANED_KV,
    GATEWAY_TOO_TIGHT,
    GATEWAY_REJECTING,
    GATEWAY_BREAKER_OPEN,
    GATEWAY_REJECTS_SLOWLY,
)
