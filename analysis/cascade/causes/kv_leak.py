"""Blocks are lost: held by no sequence and never free again."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.pack.cache import KV_LEAKING, KV_THRASHING, TAIL_WASTE
from analysis.cascade.causes.common import ELSEWHERE, PAIN, RUNNING, THROWN_OUT
from analysis.cascade.looks import alerted, both, computed, either, unbroken, without
from analysis.cascade.peers import peers_median, smoothed
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Start, Template
from analysis.frame import Values
from exporter.derive.blocks import KV_USAGE
from exporter.derive.traffic import SEQUENCES

_SMOOTH_SECONDS = 120.0
_BESIDE_PEERS_SECONDS = 60.0
"""For how long more has to be held than beside peers; the alert's signal has waited for minutes by itself."""
_ALIKE = float(np.log(1.33))
"""Sequences of another kind hold more or less on every engine: then nothing is said."""
_LOST_RATIO, _NONE_RATIO = 0.15, 0.05
"""Of the pool: what has to be lost before it is told from chance, and what chance alone makes."""


def _per_sequence(subject: Subject) -> Values | None:
    """Share of the pool that a running sequence holds; shape (n,)."""
    usage, running = subject.total(KV_USAGE), subject.total(SEQUENCES, RUNNING)
    if usage is None or running is None:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(running > 0, usage / running, np.nan)


def _held_beyond_peers(subject: Subject) -> Values | None:
    """Share of the pool that is taken beyond what its sequences would hold on its peers; shape (n,)."""
    usage, running = subject.total(KV_USAGE), subject.total(SEQUENCES, RUNNING)
    each = peers_median(subject, _per_sequence, _SMOOTH_SECONDS)
    if usage is None or running is None or each is None:
        return None
    return usage - np.where(running > 0, running * each, 0.0)


def _peers_as_before(subject: Subject) -> Values | None:
    """What a sequence holds on its peers over what it held there at first; shape (n,)."""
    each = peers_median(subject, _per_sequence, _SMOOTH_SECONDS)
    if each is None:
        return None
    early = each[: max(1, len(each) // 4)]
    return each / float(np.median(early[~np.isnan(early)])) if (~np.isnan(early)).any() else None


def _never_given_back(subject: Subject) -> Values | None:
    """The same over two minutes, from when on it never falls again till the end; NaN before. Leaks don't heal."""
    beyond = _held_beyond_peers(subject)
    if beyond is None:
        return None
    steady = smoothed(beyond, _SMOOTH_SECONDS, subject.frame.step_seconds)
    least_after = np.fmin.accumulate(steady[::-1])[::-1]
    was_none = np.cumsum(np.nan_to_num(steady, nan=1.0) < _NONE_RATIO) > 0
    return np.where(was_none & ~np.isnan(steady), least_after, np.nan)


KV_LEAK = Template(
    Cause.KV_LEAK,
    (
        Link(
            "blocks were taken that no sequence can have been using, and were never given back",
            either(
                alerted(KV_LEAKING),
                unbroken(
                    without(
                        both(
                            computed(
                                KV_USAGE,
                                _never_given_back,
                                lambda lost: lost > _LOST_RATIO,
                                _LOST_RATIO,
                                name="kv_lost_ratio",
                            ),
                            computed(
                                KV_USAGE, _peers_as_before, lambda times: np.abs(np.log(times)) < _ALIKE
                            ),
                        ),
                        either(THROWN_OUT, alerted(TAIL_WASTE)),
                    ),
                    _BESIDE_PEERS_SECONDS,
                ),
            ),
            Role.NECESSARY,
        ),
        Link("blocks were taken with nothing running or waiting", alerted(KV_LEAKING)),
        Link(
            "sequences were thrown out over and over, whose blocks stay behind for a while",
            alerted(KV_THRASHING),
            Role.AGAINST,
            weight=0.5,
        ),
    ),
    explains=PAIN,
    may_explain=ELSEWHERE,
    breadth=Breadth.ENGINE,
    starts=(Start(_held_beyond_peers, KV_USAGE, 1),),
    lead_seconds=600.0,
)
