"""A gateway's counters as Envoy shows them on ``/stats/prometheus``: the part of its page that tells of requests.

Names, labels, their order and types are those that Envoy 1.40 answered with (tests/fixtures/envoy), as are the bounds
of its histograms; the rest of its page is left out. Envoy writes no HELP, and braces where there are no labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drill.gateway_times import BOUNDS_MS, TimesTold

_CLASSES = ("1", "2", "3", "4", "5")


@dataclass(frozen=True, slots=True)
class Cluster:
    """One upstream: engines behind one name. Running totals, but for ``rq_active`` and what stands below it (now).

    ``answers``: to clients by status, those that Envoy gave itself included; ``endpoints``: engines, of which
    ``ejected`` are left alone; ``most_requests``: how many may be in flight. ``times``: None before the first request.
    """

    name: str
    rq_total: int = 0
    answers: tuple[tuple[int, int], ...] = ()
    rq_timeout: int = 0
    rq_tx_reset: int = 0
    rq_rx_reset: int = 0
    rq_pending_overflow: int = 0
    cx_connect_fail: int = 0
    ejections: int = 0
    rq_active: int = 0
    endpoints: int = 1
    ejected: int = 0
    most_requests: int = 1024
    times: TimesTold | None = None

    def answered(self, digit: str = "") -> int:
        """Answers whose status begins with it."""
        return sum(count for status, count in self.answers if str(status).startswith(digit))


@dataclass(frozen=True, slots=True)
class Listener:
    """The clients' side. Running totals, but for ``rq_active``. ``rate_limited``: by the token bucket.

    ``has_bucket``: whether there is one. Only connections that clients broke off are in ``rq_rx_reset``.
    """

    rq_total: int = 0
    rq_2xx: int = 0
    rq_4xx: int = 0
    rq_5xx: int = 0
    rq_rx_reset: int = 0
    rq_active: int = 0
    rate_limited: int = 0
    has_bucket: bool = True
    times: TimesTold | None = None


def page(listener: Listener, clusters: Sequence[Cluster], prefix: str = "ingress") -> str:
    """What Envoy would answer. ``prefix``: its ``stat_prefix``."""
    lines: list[str] = []

    def of_clusters(name: str, kind: str, value: Callable[[Cluster], int]) -> None:
        lines.append(f"# TYPE envoy_cluster_{name} {kind}")
        lines.extend(
            f'envoy_cluster_{name}{{envoy_cluster_name="{each.name}"}} {value(each)}' for each in clusters
        )

    def of_listener(name: str, kind: str, value: int) -> None:
        lines.append(f"# TYPE envoy_http_downstream_{name} {kind}")
        lines.append(f'envoy_http_downstream_{name}{{envoy_http_conn_manager_prefix="{prefix}"}} {value}')

    of_clusters("outlier_detection_ejections_enforced_total", "counter", lambda each: each.ejections)
    of_clusters("upstream_cx_connect_fail", "counter", lambda each: each.cx_connect_fail)
    of_clusters("upstream_cx_destroy_remote_with_active_rq", "counter", lambda each: each.rq_rx_reset)
    lines.append("# TYPE envoy_cluster_upstream_rq counter")
    lines.extend(line for each in clusters for line in _statuses(each))
    of_clusters("upstream_rq_active_overflow", "counter", lambda _: 0)
    of_clusters("upstream_rq_completed", "counter", lambda each: each.answered())
    of_clusters("upstream_rq_pending_failure_eject", "counter", lambda each: each.cx_connect_fail)
    of_clusters("upstream_rq_pending_overflow", "counter", lambda each: each.rq_pending_overflow)
    of_clusters("upstream_rq_retry", "counter", lambda _: 0)
    of_clusters("upstream_rq_rx_reset", "counter", lambda each: each.rq_rx_reset)
    of_clusters("upstream_rq_timeout", "counter", lambda each: each.rq_timeout)
    of_clusters("upstream_rq_total", "counter", lambda each: each.rq_total)
    of_clusters("upstream_rq_tx_reset", "counter", lambda each: each.rq_tx_reset)
    lines.append("# TYPE envoy_cluster_upstream_rq_xx counter")
    lines.extend(line for each in clusters for line in _answers(each))
    of_listener("rq_completed", "counter", listener.rq_2xx + listener.rq_4xx + listener.rq_5xx)
    of_listener("rq_response_before_rq_complete", "counter", 0)
    of_listener("rq_rx_reset", "counter", listener.rq_rx_reset)
    of_listener("rq_total", "counter", listener.rq_total)
    of_listener("rq_tx_reset", "counter", 0)
    lines.append("# TYPE envoy_http_downstream_rq_xx counter")
    answered = {"2": listener.rq_2xx, "4": listener.rq_4xx, "5": listener.rq_5xx}
    lines.extend(
        f'envoy_http_downstream_rq_xx{{envoy_response_code_class="{digit}",'
        f'envoy_http_conn_manager_prefix="{prefix}"}} {answered.get(digit, 0)}'
        for digit in _CLASSES
    )
    if listener.has_bucket:
        lines += _bucket(listener)
    of_clusters(
        "circuit_breakers_default_remaining_rq",
        "gauge",
        lambda each: max(0, each.most_requests - each.rq_active),
    )
    of_clusters(
        "circuit_breakers_default_rq_open", "gauge", lambda each: int(each.rq_active >= each.most_requests)
    )
    of_clusters("membership_healthy", "gauge", lambda each: each.endpoints - each.ejected)
    of_clusters("membership_total", "gauge", lambda each: each.endpoints)
    of_clusters("outlier_detection_ejections_active", "gauge", lambda each: each.ejected)
    of_clusters("upstream_rq_active", "gauge", lambda each: each.rq_active)
    of_clusters("upstream_rq_pending_active", "gauge", lambda _: 0)
    of_listener("rq_active", "gauge", listener.rq_active)
    lines += ["# TYPE envoy_server_live gauge", "envoy_server_live{} 1"]
    lines += _histogram(
        "envoy_cluster_upstream_rq_time",
        [(f'envoy_cluster_name="{each.name}"', each.times) for each in clusters],
    )
    lines += _histogram(
        "envoy_http_downstream_rq_time", [(f'envoy_http_conn_manager_prefix="{prefix}"', listener.times)]
    )
    return "\n".join(lines) + "\n"


def _answers(cluster: Cluster) -> list[str]:
    """Classes of answers that there were; Envoy shows no others of a cluster."""
    return [
        f'envoy_cluster_upstream_rq_xx{{envoy_response_code_class="{digit}",'
        f'envoy_cluster_name="{cluster.name}"}} {cluster.answered(digit)}'
        for digit in _CLASSES
        if cluster.answered(digit)
    ]


def _statuses(cluster: Cluster) -> list[str]:
    return [
        f'envoy_cluster_upstream_rq{{envoy_response_code="{status}",envoy_cluster_name="{cluster.name}"}} {count}'
        for status, count in sorted(cluster.answers)
    ]


def _histogram(name: str, told: Sequence[tuple[str, TimesTold | None]]) -> list[str]:
    """Those that there are; the bounds are in milliseconds."""
    lines: list[str] = []
    for labels, times in told:
        if times is None:
            continue
        for bound, count in zip(BOUNDS_MS, times.at_most, strict=True):
            at = "+Inf" if math.isinf(bound) else f"{bound:.10g}"
            lines.append(f'{name}_bucket{{{labels},le="{at}"}} {count}')
        lines.append(f"{name}_sum{{{labels}}} {times.total_ms!r}")
        lines.append(f"{name}_count{{{labels}}} {times.at_most[-1]}")
    return [f"# TYPE {name} histogram", *lines] if lines else []


def _bucket(listener: Listener) -> list[str]:
    lines = []
    for name, count in (
        ("enabled", listener.rq_total),
        ("enforced", listener.rate_limited),
        ("ok", listener.rq_total - listener.rate_limited),
        ("rate_limited", listener.rate_limited),
    ):
        lines.append(f"# TYPE envoy_http_local_rate_limit_{name} counter")
        lines.append(
            f'envoy_http_local_rate_limit_{name}{{envoy_local_http_ratelimit_prefix="bucket"}} {count}'
        )
    return lines
