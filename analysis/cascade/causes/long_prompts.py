"""More prompts than agreed are longer than their quota."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.latency import LONG_PROMPTS_OVER_QUOTA
from analysis.cascade.causes.common import (
    LOAD,
    LOAD_IN_ORDER,
    PAIN,
    PROMPTS,
    pool_full,
    requests_waited,
    users_waited,
)
from analysis.cascade.looks import alerted
from analysis.cascade.template import Link, Role, Template

LONG_PROMPTS = Template(
    Cause.LONG_PROMPTS,
    (
        Link(
            "more prompts than agreed were longer than the quota",
            alerted(LONG_PROMPTS_OVER_QUOTA),
            Role.NECESSARY,
            least_seconds=60.0,
        ),
        pool_full(),
        requests_waited(),
        users_waited(),
    ),
    explains=PAIN,
    starts=(*LOAD, PROMPTS),
    in_order=LOAD_IN_ORDER,
)
