"""The GPUs of an engine exchange their parts more slowly than before."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.engine import ENGINE_FROZEN
from alerts.pack.machine import COLLECTIVES_SLOW
from analysis.cascade.causes.common import PAIN, requests_waited, tokens_late, users_waited
from analysis.cascade.looks import alerted, level
from analysis.cascade.template import Breadth, Link, Role, Template
from exporter.derive.collectives import COLLECTIVE_RATE
from exporter.derive.nvlink import NVLINK_RATE

COLLECTIVE_SLOW = Template(
    Cause.COLLECTIVE_SLOW,
    (
        Link(
            "collectives carried less than they did with as many sequences",
            alerted(COLLECTIVES_SLOW),
            Role.NECESSARY,
            least_seconds=30.0,
        ),
        requests_waited(),
        tokens_late(),
        users_waited(),
        Link("the engine stood still altogether", alerted(ENGINE_FROZEN), Role.AGAINST, weight=0.6),
    ),
    explains=PAIN | {Cause.PREFILL_BLOCKING},
    breadth=Breadth.ENGINE,
    starts=(level(COLLECTIVE_RATE), level(NVLINK_RATE)),
    lead_seconds=120.0,
)
