"""Trials of ``alerts/pack/gateway.py``."""

from __future__ import annotations

from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.blocks import KV_USAGE
from exporter.derive.gateway import BREAKER_OPEN_RATIO, REJECT_P99, REQUESTS
from exporter.derive.orphans import ORPHAN_KV
from tests.alerts.rules.trials import Fires, Quiet, Told


def _requests(outcome: str, healthy: float, ill: float) -> Told:
    """A second."""
    return Told(REQUESTS, healthy, ill, (("outcome", outcome),))


_OK, _AMPLIFIED = _requests("ok", 5, 5), Told(AMPLIFICATION, 1, 4.2)
_WINDOW = 120
_BREAKER = (("priority", "default"), ("kind", "requests"))

TRIALS = (
    Fires(
        "RetryStorm",
        "clients leave and come again",
        (_AMPLIFIED, _requests("client_left", 0, 3), _requests("rejected", 0.1, 0.1)),
        "g: 4.2 attempts for each answer",
        within_seconds=30,
        ends_within_seconds=_WINDOW,
    ),
    Fires(
        "RetryStorm",
        "a gateway that knows timeouts only",
        (_AMPLIFIED, _requests("timeout", 0, 3), _requests("rejected", 0.1, 0.1)),
        "g: 4.2 attempts for each answer",
        within_seconds=30,
        ends_within_seconds=_WINDOW,
    ),
    Quiet(
        "RetryStorm",
        "those who were turned away come again",
        (_AMPLIFIED, _requests("rejected", 0.1, 3), _requests("client_left", 0, 0.5)),
    ),
    Fires(
        "OrphanedKv",
        "blocks of clients that are gone",
        (Told(ORPHAN_KV, 0.01, 0.4),),
        "g: 40% of KV blocks belong to clients that are gone",
    ),
    Quiet("OrphanedKv", "a few of them", (Told(ORPHAN_KV, 0.01, 0.08),)),
    Fires(
        "GatewayTooTight",
        "a fifth of what got through, with room in all engines",
        (_requests("ok", 5, 1), _requests("rejected", 0, 4), Told(KV_USAGE, 0.4, 0.4)),
        "g turns away 80% of requests while engines have room",
        calm_seconds=300,
        within_seconds=_WINDOW,
        ends_within_seconds=_WINDOW,
        steady=False,
    ),
    Quiet(
        "GatewayTooTight",
        "turned away with a rank of two full",
        (
            _requests("ok", 5, 1),
            _requests("rejected", 0, 4),
            Told(KV_USAGE, 0.4, 0.95, at={"cluster": "east", "rank": "1"}),
        ),
        calm_seconds=300,
    ),
    Quiet(
        "GatewayTooTight",
        "a peak, at which as many get through as ever",
        (_OK, _requests("rejected", 0, 5), Told(KV_USAGE, 0.4, 0.4)),
        calm_seconds=300,
    ),
    Fires(
        "GatewayRejecting",
        "half of all are turned away",
        (_OK, _requests("rejected", 0, 5)),
        "g turns away 50% of requests",
        within_seconds=30,
        ends_within_seconds=_WINDOW,
        steady=False,
    ),
    Fires(
        "GatewayRejecting",
        "breakers turn away",
        (_OK, _requests("overflow", 0, 5)),
        "g turns away 50% of requests",
        within_seconds=30,
        ends_within_seconds=_WINDOW,
        steady=False,
    ),
    Quiet("GatewayRejecting", "few are", (_OK, _requests("rejected", 0, 0.3))),
    Quiet("GatewayRejecting", "nobody asks", (_requests("ok", 0, 0), _requests("rejected", 0, 0))),
    Fires(
        "GatewayBreakerOpen",
        "a breaker at its limit most of the time",
        (Told(BREAKER_OPEN_RATIO, 0, 0.9, _BREAKER),),
        "g: a circuit breaker is open",
    ),
    Quiet("GatewayBreakerOpen", "now and then", (Told(BREAKER_OPEN_RATIO, 0, 0.3, _BREAKER),)),
    Quiet(
        "GatewayBreakerOpen",
        "a gateway without breakers",
        (Told(BREAKER_OPEN_RATIO, None, None, _BREAKER), _OK),
    ),
    Fires(
        "GatewayRejectsSlowly",
        "most of a second to say no",
        (Told(REJECT_P99, 0.005, 0.8),),
        "g takes 800ms to turn a request away",
    ),
    Quiet("GatewayRejectsSlowly", "at once", (Told(REJECT_P99, 0.005, 0.02),)),
)
