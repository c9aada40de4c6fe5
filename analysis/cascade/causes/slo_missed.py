"""Users wait longer than they were promised, for whatever reason: the last word where no cause is found."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from analysis.cascade.causes.common import LOAD, LOAD_IN_ORDER, MISSED_LIMIT, TOKENS_LATE, missed_share
from analysis.cascade.looks import computed, either
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Template
from analysis.frame import Values
from exporter.derive.latency import SLO_EVENTS

_TIMES_USUAL = 2.0


def _unusually_missed(subject: Subject) -> Values | None:
    """The share that was late where it is twice what it is half of the time, else 0; shape (n,).

    A service that always misses its objective has another trouble than what happened today.
    """
    share = missed_share(subject)
    if share is None:
        return None
    known = share[~np.isnan(share)]
    usual = float(np.median(known)) if len(known) else 0.0
    return np.where(np.isnan(share), np.nan, np.where(share > _TIMES_USUAL * usual, share, 0.0))


SLO_MISSED = Template(
    Cause.SLO_MISSED,
    (
        Link(
            "first tokens and answers were late far more often than the objective allows, and than before",
            either(
                computed(
                    SLO_EVENTS,
                    _unusually_missed,
                    lambda share: share > MISSED_LIMIT,
                    MISSED_LIMIT,
                    name="slo_missed_ratio",
                ),
                TOKENS_LATE,
            ),
            Role.NECESSARY,
            least_seconds=180.0,
        ),
    ),
    breadth=Breadth.FLEET,
    starts=LOAD,
    in_order=LOAD_IN_ORDER,
)
