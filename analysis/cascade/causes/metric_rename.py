"""An engine is upgraded, and what it called its metrics changes."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from analysis.cascade.causes.common import ELSEWHERE, PAIN
from analysis.cascade.causes.engine_down import ENGINE_GONE
from analysis.cascade.looks import either, level, rising
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Sign, Template
from exporter.derive.blocks import KV_USAGE
from exporter.derive.ranks import ENGINE_INFO, RESTARTS
from exporter.derive.traffic import PROMPT_RATE, SEQUENCES


def _usage_untold(subject: Subject) -> Sign | None:
    """The engine answers and tells no usage any more, though it did."""
    usage, answers = subject.total(KV_USAGE), subject.total(ENGINE_INFO)
    if usage is None or answers is None:
        return None
    did = np.cumsum(~np.isnan(usage)) > 0
    held = did & np.isnan(usage) & ~np.isnan(answers)
    return Sign(held, did & ~np.isnan(answers), answers, ENGINE_INFO)


METRIC_RENAME = Template(
    Cause.METRIC_RENAME,
    (
        Link("the engine could not be read for a while", ENGINE_GONE),
        Link("it began anew", rising(RESTARTS, seconds=300.0)),
        Link("it answered, and told no KV usage any more", _usage_untold, Role.NECESSARY, least_seconds=60.0),
    ),
    explains=PAIN | {Cause.ENGINE_DOWN},
    may_explain=ELSEWHERE,
    breadth=Breadth.ENGINE,
    first_sign=either(_usage_untold, ENGINE_GONE),
    starts=(level(PROMPT_RATE, -1), level(SEQUENCES, -1, counted=True)),
    lead_seconds=60.0,
)
