"""An engine answers no more."""

from __future__ import annotations

from alerts.causes import Cause
from analysis.cascade.causes.common import ELSEWHERE
from analysis.cascade.looks import compared
from analysis.cascade.template import Breadth, Link, Role, Template
from exporter.source_signals import SOURCE_UP

ENGINE_GONE = compared(SOURCE_UP, "<=", 0.0)

ENGINE_DOWN = Template(
    Cause.ENGINE_DOWN,
    (Link("the engine could not be read", ENGINE_GONE, Role.NECESSARY, least_seconds=60.0),),
    explains=ELSEWHERE,
    breadth=Breadth.ENGINE,
    first_sign=ENGINE_GONE,
)
