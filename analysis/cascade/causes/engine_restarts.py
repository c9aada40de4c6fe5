"""An engine is started over and over."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.thresholds import THRESHOLDS
from analysis.cascade.causes.common import ELSEWHERE, PAIN
from analysis.cascade.causes.engine_down import ENGINE_GONE
from analysis.cascade.looks import either, rising
from analysis.cascade.template import Breadth, Link, Role, Template
from exporter.derive.ranks import RESTARTS

_WITHIN_SECONDS = 1800.0

ENGINE_RESTARTS = Template(
    Cause.ENGINE_RESTARTS,
    (
        Link("the engine could not be read", ENGINE_GONE, lag_seconds=(-1800.0, 60.0)),
        Link(
            "the engine began anew, over and over",
            rising(RESTARTS, seconds=_WITHIN_SECONDS, above=THRESHOLDS.engine_restarts - 1),
            Role.NECESSARY,
        ),
    ),
    explains=PAIN | {Cause.ENGINE_DOWN, Cause.METRIC_RENAME},
    may_explain=ELSEWHERE,
    breadth=Breadth.ENGINE,
    first_sign=either(ENGINE_GONE, rising(RESTARTS, seconds=_WITHIN_SECONDS)),
    lead_seconds=_WITHIN_SECONDS,
)
