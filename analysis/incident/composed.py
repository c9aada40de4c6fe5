"""Series that several signals make together: shares of what rose, and what holds only beside something else."""

from __future__ import annotations

import numpy as np

from alerts.thresholds import THRESHOLDS
from analysis.frame import Key, Values
from analysis.incident.subject import Fold, Subject, folded, rises, trailing_sum
from exporter.derive.gateway import INFLIGHT, REQUESTS, UPSTREAM_REQUESTS
from exporter.derive.headroom import DEMAND
from exporter.derive.latency import SLO_EVENTS
from exporter.derive.pcie import PCIE_RATE
from exporter.derive.ranks import RESTARTS
from exporter.derive.stalls import TOKEN_AGE
from exporter.derive.traffic import SEQUENCES
from exporter.gateway_sample import Outcome
from exporter.signal import Signal
from exporter.source_signals import SOURCE_UP

RATE_SECONDS = 60.0
RESTARTS_SECONDS = 1800.0
_LEAST_EVENTS = 5.0
"""A share of fewer says nothing."""
_REFUSED = (Outcome.REJECTED, Outcome.OVERFLOW)
"""Outcomes of requests that were turned away."""


def sessions(subject: Subject) -> Values:
    """Requests in flight at gateways; where none is read, and of one engine, what engines hold."""
    seen = subject.folded(INFLIGHT, Fold.SUM)
    if not np.isnan(seen).all():
        return seen
    return subject.folded(SEQUENCES, Fold.SUM)


def missed(subject: Subject) -> Values:
    """Share of events of the trailing minute that missed their objective; the worse of both objectives."""
    shares = []
    for slo in ("ttft", "tpot"):
        missed = _recent(subject, SLO_EVENTS, slo=slo, good="false")
        events = missed + _recent(subject, SLO_EVENTS, slo=slo, good="true")
        shares.append(_share(missed, events, least=_LEAST_EVENTS))
    return folded(shares, Fold.MAX, len(subject.frame))


def turned_away(subject: Subject) -> Values:
    """Share of a trailing minute's requests that gateways turned away, where they let through far less than before.

    A limit that turns some away and lets through as many as ever is one that works.
    """
    ended = _recent(subject, REQUESTS)
    refused = folded(
        [_recent(subject, REQUESTS, outcome=each.value) for each in _REFUSED], Fold.SUM, len(ended)
    )
    through = _recent(subject, UPSTREAM_REQUESTS)
    most = np.fmax.accumulate(np.nan_to_num(through)) if len(through) else through
    share = _share(refused, ended, least=_LEAST_EVENTS)
    return np.where(
        through < THRESHOLDS.gateway_let_through_ratio * most, share, np.where(np.isnan(share), np.nan, 0.0)
    )


def restarted(subject: Subject) -> Values:
    """Starts of one engine within a trailing half hour, the most of any."""
    places = max(1, round(RESTARTS_SECONDS / subject.frame.step_seconds))
    each = [trailing_sum(rises(values), places) for _, values in subject.series(RESTARTS)]
    return folded(each, Fold.MAX, len(subject.frame))


def silent(signal: Signal, subject: Subject) -> Values:
    """1 while any of what a signal says is up is not."""
    return 1.0 - subject.folded(signal, Fold.MIN)


def held(state: Signal, where: dict[str, str], subject: Subject) -> Values:
    """The sum of a gauge over engines that answer: the last word of one that doesn't is of some time ago."""
    answering = {key.label("source"): up for key, up in subject.series(SOURCE_UP)}
    columns = []
    for key, values in subject.series(state, **where):
        up = answering.get(key.label("engine"))
        columns.append(values if up is None else np.where(up < 1, np.nan, values))
    return folded(columns, Fold.SUM, len(subject.frame))


def stands(subject: Subject) -> Values:
    """Seconds since the last token of an engine that has sequences to work on."""
    held = []
    for key, values in subject.series(TOKEN_AGE):
        running = folded(
            [
                run
                for _, run in subject.series(
                    SEQUENCES, engine=key.label("engine"), rank=key.label("rank"), state="running"
                )
            ],
            Fold.SUM,
            len(values),
        )
        held.append(np.where(running > 0, values, np.where(np.isnan(values), np.nan, 0.0)))
    return folded(held, Fold.MAX, len(subject.frame))


def pressed(subject: Subject) -> Values:
    """1 where a rank is asked for more blocks than it has and requests wait for them; demand alone is no trouble."""
    pressed = []
    for key, demand in subject.series(DEMAND):
        queued = subject.series(
            SEQUENCES, engine=key.label("engine"), rank=key.label("rank"), state="waiting"
        )
        waiting = folded([values for _, values in queued], Fold.SUM, len(demand))
        there = (demand > THRESHOLDS.kv_demand_ratio) & (waiting > THRESHOLDS.waiting_sequences)
        pressed.append(np.where(np.isnan(demand), np.nan, there))
    return folded(pressed, Fold.MAX, len(subject.frame))


def pcie(subject: Subject) -> Values:
    """Both directions of the busiest GPU."""
    by_gpu: dict[str, list[Values]] = {}
    for key, values in subject.series(PCIE_RATE):
        by_gpu.setdefault(key.label("uuid"), []).append(values)
    length = len(subject.frame)
    return folded([folded(each, Fold.SUM, length) for each in by_gpu.values()], Fold.MAX, length)


def _sequences(subject: Subject, key: Key, state: str) -> Values:
    """Of the rank that a series is of."""
    of_rank = subject.series(SEQUENCES, engine=key.label("engine"), rank=key.label("rank"), state=state)
    return folded([values for _, values in of_rank], Fold.SUM, len(subject.frame))


def _recent(subject: Subject, signal: Signal, **where: str) -> Values:
    """What the counters of a signal rose by within a trailing minute, all of them together."""
    rose = folded(
        [rises(values) for _, values in subject.series(signal, **where)], Fold.SUM, len(subject.frame)
    )
    return trailing_sum(rose, max(1, round(RATE_SECONDS / subject.frame.step_seconds)))


def _share(part: Values, whole: Values, least: float) -> Values:
    """Part of a whole; 0 where the whole is too little to say anything, NaN where it isn't known."""
    enough = whole >= least
    return np.where(enough, part / np.where(enough, whole, 1.0), np.where(np.isnan(whole), np.nan, 0.0))
