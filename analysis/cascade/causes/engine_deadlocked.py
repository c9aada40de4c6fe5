"""Requests wait in an engine that lets nobody in, until nothing runs."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.engine import ENGINE_DEADLOCKED as DEADLOCKED
from analysis.cascade.causes.common import ELSEWHERE, PAIN, WAITS, users_waited
from analysis.cascade.looks import alerted, compared
from analysis.cascade.template import Link, Role, Template
from exporter.derive.traffic import SEQUENCES

_WAITED = compared(SEQUENCES, ">", 0.0, WAITS)

ENGINE_DEADLOCKED = Template(
    Cause.ENGINE_DEADLOCKED,
    (
        Link("requests waited", _WAITED),
        Link("requests waited and none ran", alerted(DEADLOCKED), Role.NECESSARY),
        users_waited(),
    ),
    explains=PAIN | {Cause.RANK_IMBALANCE},
    may_explain=ELSEWHERE,
    first_sign=_WAITED,
)
