"""Sequences go to the host and back instead of being worked on."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.swap import KV_SEQUENCES_SWAPPED, SWAP_POOL_FILLING
from analysis.cascade.causes.common import (
    LOAD,
    LOAD_IN_ORDER,
    THRASH,
    pool_full,
    requests_waited,
    thrown_out,
    tokens_late,
    users_waited,
)
from analysis.cascade.looks import alerted
from analysis.cascade.template import Link, Role, Template

SWAP_THRASH = Template(
    Cause.SWAP_THRASH,
    (
        pool_full(),
        thrown_out(),
        Link("sequences stood swapped out on the host", alerted(KV_SEQUENCES_SWAPPED), Role.NECESSARY),
        Link("the swap pool on the host filled up", alerted(SWAP_POOL_FILLING), lag_seconds=(-60.0, 1800.0)),
        requests_waited(),
        tokens_late(),
        users_waited(),
    ),
    explains=THRASH
    | {
        Cause.RECOMPUTE_THRASH,
        Cause.ENGINE_RESTARTS,
        Cause.ENGINE_DOWN,
        Cause.ENGINE_DEADLOCKED,
        Cause.RANK_IMBALANCE,
    },
    may_explain=frozenset({Cause.GATEWAY_TOO_TIGHT}),  # what is done about it
    starts=LOAD,
    in_order=LOAD_IN_ORDER,
    lead_seconds=420.0,
    early_seconds=300.0,  # queues build up before the pool thrashes
)
