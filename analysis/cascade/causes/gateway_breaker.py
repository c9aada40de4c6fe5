"""A circuit breaker of the gateway keeps requests from engines."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.gateway import GATEWAY_BREAKER_OPEN
from analysis.cascade.causes.common import POOL_FULL
from analysis.cascade.looks import alerted, compared, rising
from analysis.cascade.template import Breadth, Link, Role, Template
from exporter.derive.gateway import BREAKER_OPEN_RATIO, REQUESTS
from exporter.gateway_sample import Outcome

_OPEN = compared(BREAKER_OPEN_RATIO, ">", 0.0)

GATEWAY_BREAKER = Template(
    Cause.GATEWAY_BREAKER,
    (
        Link(
            "a circuit breaker stood open", alerted(GATEWAY_BREAKER_OPEN), Role.NECESSARY, least_seconds=30.0
        ),
        Link(
            "requests were turned away by it",
            rising(REQUESTS, (("outcome", Outcome.OVERFLOW.value),), seconds=60.0),
        ),
        Link("the engines' pools were full all the same", POOL_FULL, Role.AGAINST, weight=0.2),
    ),
    explains=frozenset({Cause.GATEWAY_TOO_TIGHT, Cause.RETRY_STORM, Cause.OVERLOAD, Cause.SLO_MISSED}),
    breadth=Breadth.FLEET,
    first_sign=_OPEN,
)
