"""Prompts no longer share their beginnings, and the prefix cache stops paying."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.thresholds import THRESHOLDS
from analysis.cascade.causes.common import PAIN, pool_full, requests_waited, users_waited
from analysis.cascade.looks import computed, level
from analysis.cascade.subject import Subject
from analysis.cascade.template import Link, Role, Template
from analysis.frame import Values
from exporter.derive.prefill import PREFILL_RATIO, PREFIX_HITS

_PAID_QUANTILE = 0.75
_LEAST_BEFORE_SECONDS = 60.0


def _hits_after_paying(subject: Subject) -> Values | None:
    """Prefix hits from when on the cache had paid: twice the line for a quarter of the time before; shape (n,).

    NaN before that: a cache that never paid has nothing to lose.
    """
    hits = subject.total(PREFIX_HITS)
    if hits is None:
        return None
    paid = np.nan_to_num(hits) > 2 * THRESHOLDS.prefix_hit_ratio
    known = ~np.isnan(hits)
    before = np.cumsum(known)
    share = np.cumsum(paid & known) / np.maximum(1, before)
    enough = before * subject.frame.step_seconds >= _LEAST_BEFORE_SECONDS
    return np.where(known & enough & (share >= 1 - _PAID_QUANTILE), hits, np.nan)


PREFIX_COLLAPSE = Template(
    Cause.PREFIX_COLLAPSE,
    (
        Link(
            "the prefix cache hit far less than it had",
            computed(
                PREFIX_HITS,
                _hits_after_paying,
                lambda hits: hits < THRESHOLDS.prefix_hit_ratio,
                THRESHOLDS.prefix_hit_ratio,
                falls=True,
            ),
            Role.NECESSARY,
            least_seconds=60.0,
        ),
        pool_full(),
        requests_waited(),
        users_waited(),
    ),
    explains=PAIN | {Cause.RECOMPUTE_THRASH, Cause.OFFLOAD_THRASH, Cause.SWAP_THRASH},
    starts=(level(PREFIX_HITS), level(PREFILL_RATIO)),
)
