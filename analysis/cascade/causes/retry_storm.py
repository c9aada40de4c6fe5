"""Clients time out and send the same prompts again, faster than the engines can answer them."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.thresholds import THRESHOLDS
from analysis.cascade.causes.common import (
    LOAD,
    LOAD_IN_ORDER,
    ended,
    requests_waited,
    tokens_late,
    users_waited,
)
from analysis.cascade.looks import both, compared, computed
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Template
from analysis.frame import Values
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.gateway import REQUESTS
from exporter.gateway_sample import Outcome


def _gave_up(subject: Subject) -> Values | None:
    """Requests a second whose client gave up, where they are more than were turned away."""
    left, rejected = ended(subject, Outcome.CLIENT_LEFT, Outcome.TIMEOUT), ended(subject, Outcome.REJECTED)
    if left is None or rejected is None:
        return None
    return np.where(left > rejected, left, 0.0)


_GAVE_UP = computed(
    REQUESTS,
    _gave_up,
    lambda rate: rate > THRESHOLDS.retry_storm_per_second,
    THRESHOLDS.retry_storm_per_second,
    name="given_up_per_second",
)

RETRY_STORM = Template(
    Cause.RETRY_STORM,
    (
        requests_waited(),
        tokens_late(),
        Link(
            "several attempts were made for each answer, of clients that had given up",
            both(compared(AMPLIFICATION, ">", "retry_amplification_ratio"), _GAVE_UP),
            Role.NECESSARY,
            least_seconds=60.0,
        ),
        users_waited(),
    ),
    explains=frozenset({Cause.OVERLOAD, Cause.SLO_MISSED}),
    breadth=Breadth.FLEET,
    may_explain=frozenset({Cause.GATEWAY_TOO_TIGHT}),  # what is done about it
    starts=LOAD,
    in_order=LOAD_IN_ORDER,
    lead_seconds=240.0,
)
