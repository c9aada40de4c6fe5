"""Sequences are thrown out and computed again, over and over."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.cache import KV_PING_PONG, KV_THRASHING
from alerts.pack.swap import KV_OFFLOAD_THRASH, KV_SEQUENCES_SWAPPED
from analysis.cascade.causes.common import (
    LOAD,
    LOAD_IN_ORDER,
    THRASH,
    pool_full,
    requests_waited,
    thrown_out,
    users_waited,
)
from analysis.cascade.looks import alerted
from analysis.cascade.template import Link, Role, Template

RECOMPUTE_THRASH = Template(
    Cause.RECOMPUTE_THRASH,
    (
        pool_full(),
        thrown_out(),
        Link(
            "sequences were thrown out for a fifth at most of the tokens that they held",
            # that the same ones were is no proof: a real engine under plain contention has repeats of 60 %
            alerted(KV_THRASHING),
            Role.NECESSARY,
        ),
        Link("the same sequences were thrown out again", alerted(KV_PING_PONG)),
        requests_waited(),
        users_waited(),
        Link(
            "what was thrown out came back from the tier below instead of being computed again",
            alerted(KV_OFFLOAD_THRASH),
            Role.AGAINST,
            weight=0.9,
        ),
        Link(
            "what was thrown out went to the host instead of being computed again",
            alerted(KV_SEQUENCES_SWAPPED),
            Role.AGAINST,
            weight=0.3,
        ),
    ),
    explains=THRASH,
    may_explain=frozenset({Cause.GATEWAY_TOO_TIGHT}),  # what is done about it
    starts=LOAD,
    in_order=LOAD_IN_ORDER,
    lead_seconds=420.0,
    early_seconds=300.0,  # queues build up before the pool thrashes
)
