"""Engines work on for clients that have left."""

from __future__ import annotations

import numpy as np

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
_STAY_SECONDS, _AT_ONCE_SECONDS = 60.0, 5.0


def _stay(subject: Subject) -> Values | None:
    """Seconds that the mean request stays at the gateways (Little's law), over a minute; shape (n,).

    A client that leaves has waited for longer than the mean one stays: since then nobody has told its engine. Where
    more leave at once than come, those who were there all lost their patience then: 0.
    """
    held, came = subject.total(INFLIGHT), subject.risen(UPSTREAM_REQUESTS, (), _STAY_SECONDS)
    left = subject.risen(REQUESTS, _LEFT, _AT_ONCE_SECONDS)
    if held is None or came is None or left is None:
        return None
    step = subject.frame.step_seconds
    ahead = min(round(_AT_ONCE_SECONDS / step), subject.n - 1)
    soon = np.concatenate((left[ahead:], np.full(ahead, left[-1])))
    stay = trailing_share(smoothed(held, _STAY_SECONDS, step) * _STAY_SECONDS, came)
    return np.where(soon * _STAY_SECONDS > came * _AT_ONCE_SECONDS, 0.0, stay)


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
    patience=_stay,
)
