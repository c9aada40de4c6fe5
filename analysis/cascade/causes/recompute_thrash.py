"""Sequences are thrown out and computed again, over and over."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.conditions import Reading
from alerts.pack.cache import KV_PING_PONG, KV_THRASHING
from alerts.pack.swap import KV_OFFLOAD_THRASH, KV_SEQUENCES_SWAPPED
from alerts.thresholds import THRESHOLDS
from analysis.cascade.causes.common import (
    LOAD,
    LOAD_IN_ORDER,
    THRASH,
    pool_full,
    requests_waited,
    thrown_out,
    users_waited,
)
from analysis.cascade.looks import alerted, computed, either, unbroken
from analysis.cascade.subject import Subject
from analysis.cascade.template import Link, Role, Template
from analysis.frame import Values
from exporter.derive.pingpong import PINGPONG
from exporter.derive.preemption import PREEMPTIONS

_LATE_SECONDS = 120.0


def _again(subject: Subject) -> Values | None:
    """Share of preemptions that hit a sequence again, where there were many within two minutes, else 0; shape (n,).

    Engines tell that share when requests end, which may be after the last preemption.
    """
    again = subject.of(Reading(PINGPONG))
    preempted = subject.risen(PREEMPTIONS, (), _LATE_SECONDS)
    if again is None or preempted is None:
        return None
    many = preempted > THRESHOLDS.preemptions_per_second * _LATE_SECONDS
    return np.where(np.isnan(again), np.nan, np.where(many, again, 0.0))


_OVER_AND_OVER = unbroken(
    computed(
        PINGPONG,
        _again,
        lambda share: share > THRESHOLDS.repeat_preemption_ratio,
        THRESHOLDS.repeat_preemption_ratio,
    ),
    30.0,
)

RECOMPUTE_THRASH = Template(
    Cause.RECOMPUTE_THRASH,
    (
        pool_full(),
        thrown_out(),
        Link(
            "sequences were thrown out for a fifth at most of the tokens that they held, or the same ones again",
            either(alerted(KV_THRASHING), _OVER_AND_OVER),
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
