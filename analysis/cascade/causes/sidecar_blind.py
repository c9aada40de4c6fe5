"""The sidecar can no longer read the GPUs."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.conditions import Compare, Reading
from analysis.cascade.looks import either, holding
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Sign, Template
from exporter.derive.inventory import GPU_DOWN_INFO
from exporter.dialects.dcgm import STALE
from exporter.sampler.reasons import Reason
from exporter.source_signals import SOURCE_UP

_NOT_READ = tuple(
    holding(Compare(Reading(GPU_DOWN_INFO, (("reason", str(reason)),)), ">=", 1.0))
    for reason in (Reason.HUNG, STALE)
)


def _source_down(subject: Subject) -> Sign | None:
    """What is read beside the engines and can't be: GPUs, gateways, KV events."""
    engines = set(subject.fleet.engines)
    columns = [
        subject.frame.values[:, place]
        for place, key in subject.fleet.places(SOURCE_UP.full_name)
        if key.label("source") not in engines
    ]
    if not columns:
        return None
    least = columns[0]
    for column in columns[1:]:
        least = np.fmin(least, column)
    return Sign(least <= 0.0, ~np.isnan(least), least, SOURCE_UP, falls=True)


_BLIND = either(_source_down, either(*_NOT_READ))

SIDECAR_BLIND = Template(
    Cause.SIDECAR_BLIND,
    (
        Link(
            "the sidecar could not read what it watches beside the engines",
            _BLIND,
            Role.NECESSARY,
            least_seconds=30.0,
        ),
    ),
    breadth=Breadth.FLEET,
    first_sign=_BLIND,
)
