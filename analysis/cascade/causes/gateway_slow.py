"""The gateway takes long to decide whom it lets through, and to turn others away."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.pack.gateway import GATEWAY_REJECTS_SLOWLY
from analysis.cascade.looks import alerted
from analysis.cascade.peers import smoothed
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Sign, Template
from analysis.frame import Values
from exporter.derive.gateway import INFLIGHT, REJECT_P99, UPSTREAM_INFLIGHT

_HELD_SECONDS = 10.0


def _held_in_the_gateway(subject: Subject) -> Values | None:
    """Requests that have come and were not sent on, a mean of ten seconds: of a few there is none now and then."""
    all_of_them, sent = subject.total(INFLIGHT), subject.total(UPSTREAM_INFLIGHT)
    if all_of_them is None or sent is None:
        return None
    return smoothed(all_of_them - sent, _HELD_SECONDS, subject.frame.step_seconds)


_REFUSED_SLOWLY = alerted(GATEWAY_REJECTS_SLOWLY)
_OF_THEM = 0.5


def _many_held(subject: Subject) -> Sign | None:
    """More than half as many held as there are in the first minute in which refusals take long."""
    slow, held = _REFUSED_SLOWLY(subject), _held_in_the_gateway(subject)
    if slow is None or held is None:
        return slow
    steps = max(1, round(REJECT_P99.window_seconds / subject.frame.step_seconds))
    early = held[np.flatnonzero(slow.held)[:steps]]
    limit = _OF_THEM * float(np.median(early[~np.isnan(early)])) if (~np.isnan(early)).any() else 0.0
    return Sign(held > limit, ~np.isnan(held), held, INFLIGHT, limit) if limit > 0 else slow


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
