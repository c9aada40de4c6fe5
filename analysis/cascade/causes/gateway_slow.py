"""The gateway takes long to decide whom it lets through, and to turn others away."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.pack.gateway import GATEWAY_REJECTS_SLOWLY
from analysis.cascade.looks import alerted
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Sign, Template
from analysis.frame import Values
from exporter.derive.gateway import INFLIGHT, UPSTREAM_INFLIGHT


def _held_in_the_gateway(subject: Subject) -> Values | None:
    """Requests that have come and were not sent on."""
    all_of_them, sent = subject.total(INFLIGHT), subject.total(UPSTREAM_INFLIGHT)
    return None if all_of_them is None or sent is None else all_of_them - sent


_REFUSED_SLOWLY = alerted(GATEWAY_REJECTS_SLOWLY)
_LEAST_HELD, _OF_LEAST = 0.1, 0.5


def _many_held(subject: Subject) -> Sign | None:
    """More than half as many held as there are, at the least, while refusals take long."""
    slow, held = _REFUSED_SLOWLY(subject), _held_in_the_gateway(subject)
    if slow is None or held is None:
        return slow
    meanwhile = held[slow.held & ~np.isnan(held)]
    if not len(meanwhile) or np.quantile(meanwhile, _LEAST_HELD) <= 0:
        return slow
    return Sign(held > _OF_LEAST * np.quantile(meanwhile, _LEAST_HELD), ~np.isnan(held), held, INFLIGHT)


GATEWAY_SLOW = Template(
    Cause.GATEWAY_SLOW,
    (
        Link(
            "turning requests away took the gateway long",
            _REFUSED_SLOWLY,
            Role.NECESSARY,
            least_seconds=60.0,
        ),
    ),
    explains=frozenset({Cause.RETRY_STORM, Cause.SLO_MISSED, Cause.OVERLOAD}),
    breadth=Breadth.FLEET,
    first_sign=_many_held,
)
