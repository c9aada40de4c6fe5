"""What a gateway counts and shows: how requests ended, totals and gauges, as Envoy names them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from drill.gateway_config import GatewayConfig
from drill.gateway_times import TimesTold


class Reject(StrEnum):
    """Why a request was not let through."""

    RATE_LIMITED = "rate limited"
    """429: the token bucket is empty."""
    OVERFLOW = "overflow"
    """503: too many are in flight."""
    NO_ROOM = "no room"
    """429: by admission control's prediction it would find no blocks."""
    NO_ENGINE = "no engine"
    """503: none serves, or the breakers of all are open."""


class UpstreamEnd(StrEnum):
    """How a request that was sent to an engine ended, for the gateway."""

    COMPLETED = "completed"
    """200."""
    REFUSED = "refused"
    """400: the engine takes no such prompt."""
    RESET = "reset"
    """The engine died under it: 503."""
    NO_CONNECTION = "no connection"
    """Nobody listens there: 503."""
    TIMED_OUT = "timed out"
    """The gateway gave up: 504."""
    CLIENT_LEFT = "client left"


@dataclass(frozen=True, slots=True)
class UpstreamTotals:
    """Of one engine since the beginning, as Envoy counts an upstream."""

    rq_total: int = 0
    rq_2xx: int = 0
    rq_4xx: int = 0
    rq_5xx: int = 0
    """What clients got for want of an answer, timeouts included."""
    rq_timeout: int = 0
    rq_tx_reset: int = 0
    """Ended by the gateway: the client had left, or the time was up. Whether or not the engine was told."""
    rq_rx_reset: int = 0
    """Ended by the engine."""
    cx_connect_fail: int = 0
    ejections: int = 0
    """How often its breaker opened (Envoy: outlier detection)."""


@dataclass(frozen=True, slots=True)
class GatewayTotals:
    """Since the beginning, as Envoy counts a listener. ``upstreams``: in the order of the engines."""

    downstream_rq_total: int
    downstream_rq_2xx: int
    downstream_rq_4xx: int
    downstream_rq_5xx: int
    downstream_rq_rx_reset: int
    """Clients that left."""
    rejected: tuple[tuple[Reject, int], ...]
    """By reason, all of them; the answers are in ``downstream_rq_4xx`` and ``downstream_rq_5xx`` too."""
    upstreams: tuple[UpstreamTotals, ...]


@dataclass(frozen=True, slots=True)
class GatewayGauges:
    """As of now. ``config``: with which it runs. ``upstream_rq_active``, ``breaker_open``: in the order of the engines.

    ``bucket_tokens``: None without a token bucket. ``request_times`` of all that were answered, whoever did;
    ``upstream_times`` of those that an engine answered, from when they were sent to it.
    """

    config: GatewayConfig
    downstream_rq_active: int
    upstream_rq_active: tuple[int, ...]
    breaker_open: tuple[bool, ...]
    bucket_tokens: float | None
    request_times: TimesTold
    upstream_times: TimesTold
