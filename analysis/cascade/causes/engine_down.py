"""An engine answers no more."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from analysis.cascade.causes.common import ELSEWHERE, PAIN
from analysis.cascade.looks import compared, unbroken
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Sign, Template
from exporter.source_signals import SOURCE_UP

ENGINE_GONE = compared(SOURCE_UP, "<=", 0.0)
BACK_SECONDS = 300.0
"""Within which an engine that was started again answers; one that is gone for longer is down, restart or not."""


def _gone_and_back(subject: Subject) -> Sign | None:
    """Gone for less than minutes, and answering afterwards."""
    gone = ENGINE_GONE(subject)
    if gone is None:
        return None
    lasting = unbroken(ENGINE_GONE, BACK_SECONDS)(subject)
    back = np.flip(np.cumsum(np.flip(gone.known & ~gone.held))) > 0
    held = gone.held & back & ~(lasting.held if lasting is not None else gone.held)
    return Sign(held, gone.known, gone.values, gone.signal, falls=True)


ENGINE_DOWN = Template(
    Cause.ENGINE_DOWN,
    (
        Link("the engine could not be read", ENGINE_GONE, Role.NECESSARY, least_seconds=60.0),
        Link("it was still gone after minutes", ENGINE_GONE, least_seconds=BACK_SECONDS),
        Link("it was back within minutes, as after a deploy", _gone_and_back, Role.AGAINST, weight=0.4),
    ),
    explains=PAIN,
    may_explain=ELSEWHERE,
    breadth=Breadth.ENGINE,
    first_sign=ENGINE_GONE,
)
