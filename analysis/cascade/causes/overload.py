"""More is asked for than the engines can do, and they do what they can."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.pack.cache import KV_DEMAND_BEYOND_POOL
from alerts.thresholds import THRESHOLDS
from analysis.cascade.causes.common import (
    LOAD,
    LOAD_IN_ORDER,
    OBJECTIVES_MISSED,
    POOL_FULL,
    REQUESTS_WAIT,
    RUNNING,
    WAITS,
    pool_full,
    thrown_out,
    users_waited,
)
from analysis.cascade.looks import alerted, both, computed, either
from analysis.cascade.subject import Subject
from analysis.cascade.template import Link, Role, Template
from analysis.frame import Values
from exporter.derive.blocks import KV_USAGE
from exporter.derive.traffic import SEQUENCES

_QUEUED_SECONDS = 30.0
_OF_MOST = 0.9
_DEMANDED = alerted(KV_DEMAND_BEYOND_POOL)


def _queued_while_busy(subject: Subject) -> Values | None:
    """How many wait, at the engine's limit: its pool is full, or it runs as many as it ever did."""
    waiting, running = subject.total(SEQUENCES, WAITS), subject.total(SEQUENCES, RUNNING)
    if waiting is None or running is None:
        return None
    usage = subject.total(KV_USAGE)
    full = np.zeros(len(waiting), dtype=bool) if usage is None else usage >= THRESHOLDS.kv_usage_calm_ratio
    most = np.nanmax(running) if (~np.isnan(running)).any() else 0.0
    busy = full | ((running >= _OF_MOST * most) & (running > 0))
    return np.where(np.isnan(waiting), np.nan, np.where(busy, waiting, 0.0))


OVERLOAD = Template(
    Cause.OVERLOAD,
    (
        Link("more KV was asked for than the pool holds", _DEMANDED),
        pool_full(),
        Link(
            "requests queued at an engine that was full",
            computed(
                SEQUENCES,
                _queued_while_busy,
                lambda queued: queued > THRESHOLDS.waiting_sequences,
                THRESHOLDS.waiting_sequences,
                name="queued_sequences",
            ),
            Role.NECESSARY,
            least_seconds=_QUEUED_SECONDS,
        ),
        Link(
            "that was more than a moment's queue: more was asked for than it holds, or users waited too long",
            either(_DEMANDED, either(OBJECTIVES_MISSED, both(POOL_FULL, REQUESTS_WAIT))),
            Role.NECESSARY,
            least_seconds=_QUEUED_SECONDS,
        ),
        thrown_out(),
        users_waited(),
    ),
    explains=frozenset({Cause.SLO_MISSED}),
    may_explain=frozenset({Cause.GATEWAY_TOO_TIGHT}),  # what is done about it
    starts=LOAD,
    in_order=LOAD_IN_ORDER,
    lead_seconds=150.0,
)
