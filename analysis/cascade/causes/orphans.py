"""Engines work on for clients that have left."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.gateway import ORPHANED_KV
from analysis.cascade.causes.common import pool_full, requests_waited, users_waited
from analysis.cascade.looks import alerted, compared, rising, trailing_share
from analysis.cascade.peers import smoothed
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Template
from analysis.frame import Values
from exporter.derive.gateway import INFLIGHT, REQUESTS, UPSTREAM_REQUESTS
from exporter.derive.orphans import ORPHANS as ORPHAN_SEQUENCES
from exporter.gateway_sample import Outcome

_LEFT = (("outcome", Outcome.CLIENT_LEFT.value),)
_STAY_SECONDS, _OF_IT = 60.0, 0.5


def _half_of_a_stay(subject: Subject) -> Values | None:
    """Half the seconds that the mean request stays at the gateways (Little's law), over a minute; shape (n,).

    Who leaves first may have come when clients lost their patience, and has stayed for about as long as the mean one
    does; or was there before. So it is half of that time.
    """
    held, came = subject.total(INFLIGHT), subject.risen(UPSTREAM_REQUESTS, (), _STAY_SECONDS)
    if held is None or came is None:
        return None
    in_all = smoothed(held, _STAY_SECONDS, subject.frame.step_seconds) * _STAY_SECONDS
    return _OF_IT * trailing_share(in_all, came)


ORPHANS = Template(
    Cause.ORPHANS,
    (
        Link(
            "engines held sequences that the gateway waited for no more", compared(ORPHAN_SEQUENCES, ">", 0.0)
        ),
        Link("these held a share of the KV blocks", alerted(ORPHANED_KV), Role.NECESSARY, least_seconds=30.0),
        pool_full(),
        requests_waited(),
        users_waited(),
    ),
    explains=frozenset({Cause.RETRY_STORM, Cause.OVERLOAD, Cause.SLO_MISSED}),
    breadth=Breadth.FLEET,
    first_sign=rising(REQUESTS, _LEFT, seconds=60.0),
    patience=_half_of_a_stay,
)
