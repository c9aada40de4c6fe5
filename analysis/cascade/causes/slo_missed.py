"""Users wait longer than they were promised, for whatever reason: the last word where no cause is found."""

from __future__ import annotations

from alerts.causes import Cause
from analysis.cascade.causes.common import IN_WORK, OBJECTIVES_MISSED, QUEUE, TOKENS_LATE
from analysis.cascade.looks import either
from analysis.cascade.template import Breadth, Link, Role, Template

SLO_MISSED = Template(
    Cause.SLO_MISSED,
    (
        Link(
            "first tokens and answers were late far more often than the objective allows",
            either(OBJECTIVES_MISSED, TOKENS_LATE),
            Role.NECESSARY,
            least_seconds=180.0,
        ),
    ),
    breadth=Breadth.FLEET,
    starts=(QUEUE, IN_WORK),
)
