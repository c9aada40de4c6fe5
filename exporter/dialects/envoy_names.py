"""What Envoy calls things in ``/stats/prometheus``: the one home of its names.

Counters have no ``_total``, histograms are milliseconds and are merged only each 5 s
(``stats_flush_interval``), and labels stand in for parts of the dotted name. Measured on Envoy 1.40 and
read in its source.
"""

from __future__ import annotations

import enum

CLUSTER = "envoy_cluster_name"
LISTENER = "envoy_http_conn_manager_prefix"
"""The ``stat_prefix`` of an HTTP connection manager: where clients' requests are counted."""
CODE = "envoy_response_code"
CODE_CLASS = "envoy_response_code_class"

OWN_LISTENERS = frozenset({"admin", "async-client"})
"""Connection managers that Envoy itself has: those who read its admin page, and its own calls."""

SENTINEL = 2.0**62
"""``remaining_*`` without a limit counts down from 2^64 - 1: nothing that large is a number."""


class Field(enum.Enum):
    """What a series counts. All are summed over labels we don't ask for, but a breaker's gauges."""

    # by listener
    REQUESTS = "envoy_http_downstream_rq_total"
    ACTIVE = "envoy_http_downstream_rq_active"
    ANSWERS = "envoy_http_downstream_rq_xx"
    RESETS = "envoy_http_downstream_rq_rx_reset"
    """All streams reset, whoever did it: those of ``RESETS_SENT`` and of ``ANSWERED_EARLY`` are among them."""
    RESETS_SENT = "envoy_http_downstream_rq_tx_reset"
    """Answers that Envoy broke off after they had begun: its time was up, or the engine's connection broke."""
    ANSWERED_EARLY = "envoy_http_downstream_rq_response_before_rq_complete"
    """Answered before the whole request had come, as a 429 to a long prompt is: reset, but no client left."""
    REQUEST_TIME = "envoy_http_downstream_rq_time"
    # by filter
    RATE_LIMITED = "envoy_http_local_rate_limit_enforced"
    """Local 429s: they stand on no cluster."""
    # by cluster
    UPSTREAM_REQUESTS = "envoy_cluster_upstream_rq_total"
    UPSTREAM_ACTIVE = "envoy_cluster_upstream_rq_active"
    UPSTREAM_PENDING = "envoy_cluster_upstream_rq_pending_active"
    UPSTREAM_ANSWERS = "envoy_cluster_upstream_rq"
    """Last answers by code, those that Envoy makes itself (503, 504, a global limit's 429) included."""
    PENDING_OVERFLOW = "envoy_cluster_upstream_rq_pending_overflow"
    ACTIVE_OVERFLOW = "envoy_cluster_upstream_rq_active_overflow"
    """Of max_requests, since 1.40; before, it was counted as pending overflow."""
    TIMEOUTS = "envoy_cluster_upstream_rq_timeout"
    RETRIES = "envoy_cluster_upstream_rq_retry"
    BROKEN_CONNECTIONS = "envoy_cluster_upstream_cx_destroy_remote_with_active_rq"
    UPSTREAM_RESETS = "envoy_cluster_upstream_rq_rx_reset"
    GIVEN_UP_STREAMS = "envoy_cluster_upstream_rq_tx_reset"
    """Attempts that Envoy broke off itself, over HTTP/2; over HTTP/1 it closes the connection."""
    GIVEN_UP_CONNECTIONS = "envoy_cluster_upstream_cx_destroy_local_with_active_rq"
    CONNECT_FAILURES = "envoy_cluster_upstream_rq_pending_failure_eject"
    MEMBERS = "envoy_cluster_membership_total"
    UPSTREAM_TIME = "envoy_cluster_upstream_rq_time"
    BREAKER = "envoy_cluster_circuit_breakers_"


BY_NAME = {field.value: field for field in Field if field is not Field.BREAKER}
BY_LISTENER = frozenset(
    {
        Field.REQUESTS,
        Field.ACTIVE,
        Field.ANSWERS,
        Field.RESETS,
        Field.RESETS_SENT,
        Field.ANSWERED_EARLY,
        Field.REQUEST_TIME,
    }
)
HISTOGRAMS = {
    f"{field.value}{part}": (field, part)
    for field in (Field.REQUEST_TIME, Field.UPSTREAM_TIME)
    for part in ("_bucket", "_sum", "_count")
}

BREAKER_KINDS = {
    "cx_open": "connections",
    "cx_pool_open": "connection_pools",
    "rq_open": "requests",
    "rq_pending_open": "pending",
    "rq_retry_open": "retries",
}
PRIORITIES = ("default", "high")

_OWN = frozenset({"agent", "admin", "stats"})
"""What clusters that Envoy calls for its own ends are called; engines' may begin with these words."""
_OWN_BEGINNINGS = ("xds", "ads", "rate_limit", "ratelimit", "ext_authz", "extauth", "ext_proc", "extproc", "jaeger",
                   "zipkin", "otel", "opentelemetry", "tracing", "prometheus_stats", "sds_grpc", "statsd")  # fmt: skip
"""What they are called, or begin with: no engine is behind them."""


def is_of_envoy(cluster: str) -> bool:
    """Whether a cluster's name says that Envoy calls it for its own ends."""
    plain = cluster.lower().replace("-", "_")
    return plain in _OWN or any(
        plain == name or plain.startswith((name + "_", name + ".")) for name in _OWN_BEGINNINGS
    )
