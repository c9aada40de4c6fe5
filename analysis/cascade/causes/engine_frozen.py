"""An engine stands still with sequences in it."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.engine import ENGINE_FROZEN as FROZEN
from alerts.pack.latency import DECODE_STALLED
from analysis.cascade.causes.common import ELSEWHERE, PAIN, users_waited
from analysis.cascade.looks import alerted, compared, unbroken
from analysis.cascade.template import Link, Role, Template
from exporter.derive.stalls import FROZEN_AFTER_SECONDS, TOKEN_AGE

ENGINE_FROZEN = Template(
    Cause.ENGINE_FROZEN,
    (
        Link("no token came while sequences ran", alerted(DECODE_STALLED), lag_seconds=(-60.0, 300.0)),
        Link("nothing in the engine moved", alerted(FROZEN), Role.NECESSARY),
        users_waited(),
    ),
    explains=PAIN | {Cause.ENGINE_DEADLOCKED, Cause.COLLECTIVE_SLOW, Cause.RANK_IMBALANCE},
    may_explain=ELSEWHERE,
    first_sign=unbroken(compared(TOKEN_AGE, ">", 0.0), FROZEN_AFTER_SECONDS),
)
