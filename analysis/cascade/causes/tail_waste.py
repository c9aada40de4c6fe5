"""Large blocks stand half empty, and the pool is full before its memory is."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.cache import TAIL_WASTE as WASTED
from analysis.cascade.causes.common import (
    ELSEWHERE,
    LOAD,
    LOAD_IN_ORDER,
    PAIN,
    pool_full,
    requests_waited,
    thrown_out,
    users_waited,
)
from analysis.cascade.looks import alerted
from analysis.cascade.template import Link, Role, Template

TAIL_WASTE = Template(
    Cause.TAIL_WASTE,
    (
        Link(
            "much of what was used was empty tails of blocks",
            alerted(WASTED),
            Role.NECESSARY,
            least_seconds=60.0,
        ),
        pool_full(),
        requests_waited(),
        thrown_out(),
        users_waited(),
    ),
    explains=PAIN,
    may_explain=ELSEWHERE,
    starts=LOAD,
    in_order=LOAD_IN_ORDER,
)
