"""Thrashold's own signals, of this release."""

from __future__ import annotations

import re

from alerts.lint.facts.metric import Exporter, Kind, Metric, Scale
from exporter import signal
from exporter.catalogue import SIGNALS
from exporter.derive.gpu_health import XID_ERRORS
from exporter.signal import PEAK_SUFFIX, PREFIX, Signal


def _metrics(each: Signal) -> list[Metric]:
    if each.kind is signal.Kind.COUNTER:
        return [Metric(each.name, Kind.COUNTER, born_late=each is XID_ERRORS)]
    is_share = each.name.endswith("_ratio") and not each.above_one
    scale = Scale.RATIO if is_share else Scale.OPEN
    names = [each.name, each.name + PEAK_SUFFIX] if each.peak else [each.name]
    return [Metric(name, Kind.GAUGE, scale) for name in names]


OWN = Exporter(
    "thrashold",
    "thrashold",
    re.compile(f"^{PREFIX}"),
    PREFIX,
    {metric.name: metric for each in SIGNALS for metric in _metrics(each)},
    {},
    complete=True,
)
