"""One rank of an engine has far more to do than the others."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.engine import RANKS_OUT_OF_BALANCE
from analysis.cascade.causes.common import ELSEWHERE, PAIN, pool_full, requests_waited, users_waited
from analysis.cascade.looks import alerted, level
from analysis.cascade.template import Breadth, Link, Role, Template
from exporter.derive.ranks import IMBALANCE

RANK_IMBALANCE = Template(
    Cause.RANK_IMBALANCE,
    (
        Link(
            "one rank had far more sequences than the others",
            alerted(RANKS_OUT_OF_BALANCE),
            Role.NECESSARY,
            least_seconds=60.0,
        ),
        pool_full(),
        requests_waited(),
        users_waited(),
    ),
    explains=PAIN,
    may_explain=ELSEWHERE,
    breadth=Breadth.ENGINE,
    starts=(level(IMBALANCE, 1),),
)
