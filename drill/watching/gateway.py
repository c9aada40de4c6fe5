"""The drill's gateway in Envoy's words, as text and as what a sidecar reads in it.

All engines stand behind one cluster. What Envoy can't tell apart stays so: an attempt that found no engine and one
whose engine died are both a 503, and as many of these as connections broke pass for the latter.
"""

from __future__ import annotations

from drill.expose.envoy import Cluster, Listener
from drill.gateway_counts import GatewayGauges, GatewayTotals, Reject
from drill.gateway_times import BOUNDS_MS, TimesTold
from exporter.gateway_sample import Breaker, GatewaySample, Outcome
from exporter.sample import Histogram

NAME = "gateway"
CLUSTER = "engines"
_UNLIMITED = 2**32 - 1
"""What Envoy takes for no limit."""


def listener_of(totals: GatewayTotals, gauges: GatewayGauges) -> Listener:
    """The clients' side. A bucket that turned somebody away stays on the page: a limit is lifted by a larger bucket."""
    limited = dict(totals.rejected)[Reject.RATE_LIMITED]
    return Listener(
        rq_total=totals.downstream_rq_total,
        rq_2xx=totals.downstream_rq_2xx,
        rq_4xx=totals.downstream_rq_4xx,
        rq_5xx=totals.downstream_rq_5xx,
        rq_rx_reset=totals.downstream_rq_rx_reset,
        rq_active=gauges.downstream_rq_active,
        rate_limited=limited,
        has_bucket=limited > 0 or gauges.config.rate_per_second is not None,
        times=gauges.request_times if totals.downstream_rq_total else None,
    )


def cluster_of(totals: GatewayTotals, gauges: GatewayGauges) -> Cluster:
    """The engines' side. A 429 of admission control is charged here, as a global rate limit's is."""
    rejected = dict(totals.rejected)
    ups = totals.upstreams
    timeouts = sum(each.rq_timeout for each in ups)
    overflow = rejected[Reject.OVERFLOW]
    answers = {
        200: sum(each.rq_2xx for each in ups),
        400: sum(each.rq_4xx for each in ups),
        429: rejected[Reject.NO_ROOM],
        503: sum(each.rq_5xx for each in ups) - timeouts + overflow + rejected[Reject.NO_ENGINE],
        504: timeouts,
    }
    limit = gauges.config.max_requests
    return Cluster(
        CLUSTER,
        rq_total=sum(each.rq_total for each in ups),
        answers=tuple((status, count) for status, count in answers.items() if count),
        rq_timeout=timeouts,
        rq_tx_reset=sum(each.rq_tx_reset for each in ups),
        rq_rx_reset=sum(each.rq_rx_reset for each in ups),
        rq_pending_overflow=overflow,
        cx_connect_fail=sum(each.cx_connect_fail for each in ups),
        ejections=sum(each.ejections for each in ups),
        rq_active=sum(gauges.upstream_rq_active),
        endpoints=len(ups),
        ejected=sum(gauges.breaker_open),
        most_requests=_UNLIMITED if limit is None else limit,
        times=gauges.upstream_times if any(each.rq_total for each in ups) else None,
    )


def _histogram(times: TimesTold | None) -> Histogram | None:
    """In seconds."""
    if times is None:
        return None
    return Histogram(
        tuple(bound / 1000 for bound in BOUNDS_MS),
        tuple(float(count) for count in times.at_most),
        times.total_ms / 1000,
    )


def sample_of(listener: Listener, cluster: Cluster, at: float) -> GatewaySample:
    """What a sidecar has that read both at ``at`` (seconds since the epoch)."""
    statuses = dict(cluster.answers)
    rejected = listener.rate_limited + statuses.get(429, 0)
    overflow, late = cluster.rq_pending_overflow, statuses.get(504, 0)
    # a broken connection is counted twice, as it and as the attempt that it ended
    broken = 2 * cluster.rq_rx_reset + cluster.cx_connect_fail
    reset = min(max(0, statuses.get(503, 0) - overflow), broken)
    ended = listener.rq_total - listener.rq_active
    outcomes = (
        (Outcome.OK, ended - listener.rq_4xx - listener.rq_5xx - listener.rq_rx_reset),
        (Outcome.CLIENT_ERROR, listener.rq_4xx - rejected),
        (Outcome.SERVER_ERROR, listener.rq_5xx - overflow - late - reset),
        (Outcome.REJECTED, rejected),
        (Outcome.TIMEOUT, late),
        (Outcome.UPSTREAM_RESET, reset),
        (Outcome.OVERFLOW, overflow),
        (Outcome.CLIENT_LEFT, listener.rq_rx_reset),
    )
    return GatewaySample(
        at,
        NAME,
        "envoy",
        0.0,
        inflight=float(listener.rq_active),
        upstream_inflight=float(cluster.rq_active),
        pending=0.0,
        requests_total=float(listener.rq_total),
        outcomes_total=tuple((outcome, float(max(0, count))) for outcome, count in outcomes),
        retries_total=0.0,
        upstream_requests_total=float(cluster.rq_total),
        given_up_total=float(cluster.rq_tx_reset),
        turned_away_total=float(listener.rate_limited + overflow),
        breakers=(Breaker("default", "requests", cluster.rq_active >= cluster.most_requests),),
        request_time=_histogram(listener.times),
        upstream_time=_histogram(cluster.times) or _histogram(TimesTold() if listener.times else None),
        backends=float(cluster.endpoints),
        cluster=cluster.name,
    )
