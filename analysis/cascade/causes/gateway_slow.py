"""The gateway takes long to decide whom it lets through, and to turn others away."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.gateway import GATEWAY_REJECTS_SLOWLY
from analysis.cascade.looks import alerted
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Start, Template
from analysis.frame import Values
from exporter.derive.gateway import INFLIGHT, REJECT_P99, UPSTREAM_INFLIGHT


def _held_in_the_gateway(subject: Subject) -> Values | None:
    """Requests that have come and were not sent on; where that isn't told, how long refusals take."""
    all_of_them, sent = subject.total(INFLIGHT), subject.total(UPSTREAM_INFLIGHT)
    return subject.total(REJECT_P99) if all_of_them is None or sent is None else all_of_them - sent


GATEWAY_SLOW = Template(
    Cause.GATEWAY_SLOW,
    (
        Link(
            "turning requests away took the gateway long",
            alerted(GATEWAY_REJECTS_SLOWLY),
            Role.NECESSARY,
            least_seconds=60.0,
        ),
    ),
    explains=frozenset({Cause.RETRY_STORM, Cause.SLO_MISSED, Cause.OVERLOAD}),
    breadth=Breadth.FLEET,
    starts=(Start(_held_in_the_gateway, INFLIGHT, 1),),
)
