"""Retry storms: how many attempts a success takes."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.derive.phenomenon import EngineFacts, stateless
from exporter.gateway_sample import GatewaySample, Outcome
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Delta, Window

AMPLIFICATION_SECONDS = 60.0

AMPLIFICATION = Signal(
    "retry_amplification_ratio",
    Kind.GAUGE,
    Scope.GATEWAY,
    "Attempts that ended in the trailing 60 s over those that succeeded: 1 where each request is asked once. Who asks "
    "again comes as a new request, so clients' retries are in, and the gateway's own. Without a success it is the "
    "number of attempts: at least that many are needed for one. Absent while nothing ends.",
    Confidence.MEASURED,
    "(requests ended, but for client errors, + the gateway's retries) / requests answered 2xx or 3xx to the end. "
    "LiteLLM counts its retries among what it sent to deployments: the larger of both counts",
    ("outcomes_total", "retries_total", "upstream_requests_total"),
    window_seconds=AMPLIFICATION_SECONDS,
    above_one=True,
)


def _derive(window: Window[GatewaySample], _facts: EngineFacts) -> Iterator[Point]:
    ended = window.delta(_attempts_ended, AMPLIFICATION_SECONDS)
    succeeded = window.delta(lambda sample: sample.outcome(Outcome.OK), AMPLIFICATION_SECONDS)
    if ended is None or succeeded is None:
        return
    retries = window.delta(lambda sample: sample.retries_total, AMPLIFICATION_SECONDS)
    sent = window.delta(lambda sample: sample.upstream_requests_total, AMPLIFICATION_SECONDS)
    attempts = ended.increase + _increase(retries)
    if retries is None:
        attempts = max(attempts, _increase(sent))
    if attempts > 0:
        yield Point(AMPLIFICATION, (), max(1.0, attempts / max(1.0, succeeded.increase)))


def _attempts_ended(sample: GatewaySample) -> float | None:
    """A request that the client got wrong is not asked again as it is."""
    ended = sample.ended
    return None if ended is None else ended - (sample.outcome(Outcome.CLIENT_ERROR) or 0.0)


def _increase(delta: Delta | None) -> float:
    return 0.0 if delta is None else delta.increase


AMPLIFICATION_PHENOMENON = stateless("retry_amplification", (AMPLIFICATION,), _derive)
