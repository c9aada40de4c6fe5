"""Long prompts that aren't computed in chunks stop the decoding of all others."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.engine import ENGINE_DEADLOCKED, ENGINE_FROZEN
from alerts.pack.latency import HEAD_OF_LINE_BLOCKING
from analysis.cascade.causes.common import LOAD, LOAD_IN_ORDER, PAIN, PROMPTS, users_waited
from analysis.cascade.looks import alerted, rising
from analysis.cascade.template import Link, Role, Template
from exporter.derive.stalls import STALL_SECONDS

_STALLED_OF_A_MINUTE = 2.0

PREFILL_BLOCKING = Template(
    Cause.PREFILL_BLOCKING,
    (
        Link(
            "decoding stood still for seconds at a time",
            rising(STALL_SECONDS, seconds=60.0, above=_STALLED_OF_A_MINUTE),
            Role.NECESSARY,
            least_seconds=30.0,
        ),
        Link(
            "sequences stood behind a prefill",
            alerted(HEAD_OF_LINE_BLOCKING),
            Role.NECESSARY,
            least_seconds=60.0,
        ),
        users_waited(),
        Link("nothing moved at all", alerted(ENGINE_FROZEN), Role.AGAINST, weight=0.8),
        Link("nothing ran", alerted(ENGINE_DEADLOCKED), Role.AGAINST, weight=0.8),
    ),
    explains=PAIN | {Cause.LONG_PROMPTS},
    starts=(*LOAD, PROMPTS),
    in_order=LOAD_IN_ORDER,
    lead_seconds=150.0,
)
