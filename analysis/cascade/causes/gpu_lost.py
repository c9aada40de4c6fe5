"""A GPU falls off the bus, and its engine with it."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.machine import GPU_LOST as LOST
from analysis.cascade.causes.common import ELSEWHERE, PAIN
from analysis.cascade.causes.engine_down import ENGINE_GONE
from analysis.cascade.looks import alerted, rising
from analysis.cascade.template import Breadth, Link, Role, Template
from exporter.derive.gpu_health import XID_ERRORS

_LOST = alerted(LOST)

GPU_LOST = Template(
    Cause.GPU_LOST,
    (
        Link(
            "the driver reported an error of the GPU",
            rising(XID_ERRORS, seconds=900.0),
            lag_seconds=(-120.0, 120.0),
        ),
        Link("the driver said that the GPU is gone or ill", _LOST, Role.NECESSARY, least_seconds=30.0),
        Link("its engine answered no more", ENGINE_GONE, lag_seconds=(-60.0, 300.0)),
    ),
    explains=PAIN
    | {
        Cause.ENGINE_DOWN,
        Cause.ENGINE_RESTARTS,
        Cause.ENGINE_FROZEN,
        Cause.COLLECTIVE_SLOW,
    },
    may_explain=ELSEWHERE | {Cause.GATEWAY_BREAKER},
    breadth=Breadth.GPU,
    first_sign=_LOST,
)
