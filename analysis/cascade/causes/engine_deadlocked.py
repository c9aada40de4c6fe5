"""Requests wait in an engine that lets nobody in, until nothing runs."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.pack.engine import ENGINE_DEADLOCKED as DEADLOCKED
from alerts.thresholds import THRESHOLDS
from analysis.cascade.causes.common import ELSEWHERE, FIRST_TOKENS, PAIN, RUNNING, WAITS, users_waited
from analysis.cascade.looks import alerted, compared, computed, either, unbroken
from analysis.cascade.subject import Subject
from analysis.cascade.template import Link, Role, Template
from analysis.frame import Values
from exporter.derive.blocks import KV_USAGE
from exporter.derive.latency import SLO_EVENTS
from exporter.derive.traffic import GENERATION_RATE, SEQUENCES

_WAITED = compared(SEQUENCES, ">", 0.0, WAITS)
_NOBODY_SECONDS = 60.0
_LASTS_SECONDS = 30.0


def _left_outside(subject: Subject) -> Values | None:
    """How many wait where for a minute nobody was let in, with room for them, and those inside went on; shape (n,).

    Long answers run on for many minutes behind whose backs an engine has long been deadlocked.
    """
    waiting, running = subject.total(SEQUENCES, WAITS), subject.total(SEQUENCES, RUNNING)
    usage, tokens = subject.total(KV_USAGE), subject.total(GENERATION_RATE)
    begun = subject.risen(SLO_EVENTS, FIRST_TOKENS, _NOBODY_SECONDS)
    if waiting is None or running is None or usage is None or tokens is None or begun is None:
        return None
    shut = (begun == 0) & (usage < THRESHOLDS.kv_usage_calm_ratio) & (running > 0) & (tokens > 0)
    return np.where(np.isnan(waiting), np.nan, np.where(shut, waiting, 0.0))


ENGINE_DEADLOCKED = Template(
    Cause.ENGINE_DEADLOCKED,
    (
        Link("requests waited", _WAITED),
        Link(
            "requests waited, and none ran, or for minutes none was let in though there was room",
            either(
                alerted(DEADLOCKED),
                unbroken(
                    computed(SEQUENCES, _left_outside, lambda waiting: waiting > 0, 0.0, name="left_outside"),
                    _LASTS_SECONDS,
                ),
            ),
            Role.NECESSARY,
        ),
        users_waited(),
    ),
    explains=PAIN | {Cause.RANK_IMBALANCE},
    may_explain=ELSEWHERE,
    first_sign=_WAITED,
)
