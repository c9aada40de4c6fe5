"""The gateway turns away requests for which the engines have room."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.pack.gateway import MOST_RANKS
from alerts.thresholds import THRESHOLDS
from analysis.cascade.causes.common import ended
from analysis.cascade.looks import both, computed, rising, trailing_share
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Template
from analysis.frame import Values
from analysis.robust import quantile_of_columns
from exporter.derive.blocks import KV_USAGE
from exporter.derive.gateway import REQUESTS
from exporter.gateway_sample import Outcome

_TURNED_AWAY = (Outcome.REJECTED, Outcome.OVERFLOW)


def _turned_away_share(subject: Subject) -> Values | None:
    every, away = ended(subject), ended(subject, *_TURNED_AWAY)
    return None if every is None or away is None else trailing_share(away, every)


def _let_through_share(subject: Subject) -> Values | None:
    """Requests let through over the most of them so far, where as much is asked for; shape (n,), NaN elsewhere."""
    every, away = ended(subject), ended(subject, *_TURNED_AWAY)
    if every is None or away is None:
        return None
    most = np.maximum.accumulate(every - away)
    asked = every > THRESHOLDS.gateway_let_through_ratio * most
    return np.where(asked, trailing_share(every - away, most), np.nan)


def _usage_of_most(subject: Subject) -> Values | None:
    """KV usage that nine of ten ranks are below; shape (n,)."""
    columns = list(subject.columns(KV_USAGE))
    return quantile_of_columns(np.stack(columns), MOST_RANKS) if columns else None


_REFUSED = computed(
    REQUESTS,
    _turned_away_share,
    lambda share: share > THRESHOLDS.gateway_rejected_ratio,
    THRESHOLDS.gateway_rejected_ratio,
    name="gateway_rejected_ratio",
)
_FEWER = computed(
    REQUESTS,
    _let_through_share,
    lambda share: share < THRESHOLDS.gateway_let_through_ratio,
    THRESHOLDS.gateway_let_through_ratio,
    falls=True,
    name="gateway_let_through_ratio",
)
_ROOM = computed(
    KV_USAGE,
    _usage_of_most,
    lambda usage: usage < THRESHOLDS.kv_usage_calm_ratio,
    THRESHOLDS.kv_usage_calm_ratio,
    falls=True,
)

GATEWAY_TOO_TIGHT = Template(
    Cause.GATEWAY_TOO_TIGHT,
    (
        Link("the gateway turned away more than it should", _REFUSED, Role.NECESSARY, least_seconds=30.0),
        Link(
            "it let through less than half of what it had, though as much was asked for",
            both(_FEWER, _REFUSED),
            Role.NECESSARY,
            least_seconds=30.0,
        ),
        Link("the engines had room all the while", both(_ROOM, _REFUSED), Role.NECESSARY, least_seconds=30.0),
    ),
    explains=frozenset({Cause.RETRY_STORM, Cause.SLO_MISSED, Cause.OVERLOAD}),
    breadth=Breadth.FLEET,
    first_sign=rising(REQUESTS, (("outcome", Outcome.REJECTED.value),), seconds=60.0),
)
