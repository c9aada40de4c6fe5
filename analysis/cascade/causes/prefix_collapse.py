"""Prompts no longer share their beginnings, and the prefix cache stops paying."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.conditions import Reading
from alerts.thresholds import THRESHOLDS
from analysis.cascade.causes.common import (
    ELSEWHERE,
    FIRST_TOKENS,
    PAIN,
    pool_full,
    requests_waited,
    users_waited,
)
from analysis.cascade.looks import both, computed, level, trailing_share
from analysis.cascade.peers import smoothed
from analysis.cascade.subject import Subject
from analysis.cascade.template import Link, Role, Template
from analysis.frame import Values
from exporter.derive.latency import SLO_EVENTS
from exporter.derive.prefill import LONG_PROMPTS, PREFIX_HITS
from exporter.derive.traffic import PROMPT_RATE

_PAYS = 2.0
_LOST_RATIO = 0.5
"""Of what it usually hit: a cache that hits less than this has lost most of what it was there for."""
_LEAST_BEFORE_SECONDS = 60.0


def _hits_lost(subject: Subject) -> Values | None:
    """Prefix hits where they are less than half of what they had been on the mean so far, else 1; shape (n,).

    NaN where the cache had not paid by then: it has nothing to lose.
    """
    hits = subject.total(PREFIX_HITS)
    if hits is None:
        return None
    known = ~np.isnan(hits)
    # what it hit while it paid: a collapse that goes on for long must not become what is usual
    paying = known & (np.nan_to_num(hits) >= THRESHOLDS.prefix_hit_ratio)
    usual = np.cumsum(np.where(paying, hits, 0.0)) / np.maximum(1, np.cumsum(paying))
    paid = np.cumsum(paying) * subject.frame.step_seconds >= _LEAST_BEFORE_SECONDS
    # of a cache that pays little, those who look up much and find little hide what the others find
    long = subject.of(Reading(LONG_PROMPTS))
    if long is not None:
        paid &= (usual >= _PAYS * THRESHOLDS.prefix_hit_ratio) | ~(long > THRESHOLDS.long_prompt_ratio)
    return np.where(known & paid, np.where(hits < _LOST_RATIO * usual, hits, 1.0), np.nan)


def _saved(subject: Subject) -> Values | None:
    """Prompt tokens that the cache spares each request, or a second where nobody tells requests; shape (n,).

    Over their mean so far. Long prompts of their own make the share of hits fall as well, and the others come less
    often beside them; but each of these still finds what it found.
    """
    hits, prompts = subject.total(PREFIX_HITS), subject.total(PROMPT_RATE)
    if hits is None or prompts is None:
        return None
    window = PREFIX_HITS.window_seconds
    spared = smoothed(hits * prompts, window, subject.frame.step_seconds)
    begun = subject.risen(SLO_EVENTS, FIRST_TOKENS, window)
    if begun is not None:
        spared = trailing_share(spared * window, begun)
    known = ~np.isnan(spared)
    usual = np.cumsum(np.where(known, spared, 0.0)) / np.maximum(1, np.cumsum(known))
    return trailing_share(spared, usual)


PREFIX_COLLAPSE = Template(
    Cause.PREFIX_COLLAPSE,
    (
        Link(
            "the prefix cache hit far less than it had",
            both(
                computed(
                    PREFIX_HITS,
                    _hits_lost,
                    lambda hits: hits < THRESHOLDS.prefix_hit_ratio,
                    THRESHOLDS.prefix_hit_ratio,
                    falls=True,
                ),
                computed(PREFIX_HITS, _saved, lambda share: share < _LOST_RATIO),
            ),
            Role.NECESSARY,
            least_seconds=60.0,
        ),
        pool_full(),
        requests_waited(),
        users_waited(),
    ),
    explains=PAIN,
    may_explain=ELSEWHERE,
    starts=(level(PREFIX_HITS, -1, is_mean=True),),
)
