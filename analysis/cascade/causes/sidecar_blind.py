"""The sidecar can no longer read the GPUs."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.conditions import Compare, Reading
from analysis.cascade.looks import either, holding
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Sign, Template
from exporter.derive.inventory import ENGINE_GPU_INFO, GPU_DOWN_INFO, MERELY_UNREAD
from exporter.source_signals import SOURCE_UP

_HUNG, _STALE = (
    holding(Compare(Reading(GPU_DOWN_INFO, (("reason", reason),)), ">=", 1.0)) for reason in MERELY_UNREAD
)


def _source_down(subject: Subject) -> Sign | None:
    """Something that is read beside the engines can't be: GPUs, gateways, KV events."""
    fleet = subject.fleet
    columns = [
        subject.frame.values[:, place]
        for place, key in fleet.places(SOURCE_UP.full_name)
        if key.label("source") in fleet.sources
    ]
    if not columns:
        return None
    least = np.fmin.reduce(columns)
    return Sign(least <= 0.0, ~np.isnan(least), least, SOURCE_UP, falls=True)


def _gpus_untold(subject: Subject) -> Sign | None:
    """A source is down, and of this engine's GPUs nothing is told any more; of any engine where a gateway is down."""
    down, told = _source_down(subject), subject.total(ENGINE_GPU_INFO)
    if down is None:
        return None
    gateways = [
        subject.frame.values[:, place]
        for place, key in subject.fleet.places(SOURCE_UP.full_name)
        if key.label("source") in subject.fleet.gateways
    ]
    held = np.zeros(subject.n, dtype=bool) if told is None else down.held & np.isnan(told)
    for column in gateways:
        held = held | (column <= 0.0)
    return Sign(held, down.known, down.values, SOURCE_UP, falls=True)


SIDECAR_BLIND = Template(
    Cause.SIDECAR_BLIND,
    (
        Link(
            "the sidecar could not read what it watches beside the engine",
            either(_gpus_untold, either(_HUNG, _STALE)),
            Role.NECESSARY,
            least_seconds=30.0,
        ),
    ),
    breadth=Breadth.ENGINE,
    first_sign=_source_down,
)
