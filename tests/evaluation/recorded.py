"""What the sidecar recorded of a run each second, which scrapes of 15 s see only in part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exporter.derive.blocks import KV_USAGE
from exporter.derive.latency import SLO_EVENTS, TPOT_P99
from exporter.derive.traffic import SEQUENCES
from exporter.recorder_reader import Recording
from tests.evaluation.live_figures import SLOW_SECONDS


@dataclass(frozen=True, slots=True)
class Recorded:
    """``slow``: seconds of the clock in which p99 TPOT of an engine is above 2 s, in order.

    ``usage_ratio`` and ``waiting``: the fullest pool and the longest queue of all ranks together, at any second.
    ``late_ratios``: by objective, of all events those that missed it; one of which nothing was counted isn't there.
    """

    slow: tuple[float, ...]
    usage_ratio: float
    waiting: float
    late_ratios: Mapping[str, float]


def recorded(path: Path) -> Recorded:
    """Of one run. Raises RecordingError: no recording of ours."""
    slow: set[float] = set()
    usage = 0.0
    waiting: dict[float, float] = defaultdict(float)
    events: dict[str, dict[str, float]] = defaultdict(lambda: {"true": 0.0, "false": 0.0})
    names = {each.full_name for each in (TPOT_P99, KV_USAGE, SEQUENCES, SLO_EVENTS)}
    with Recording(path) as opened:
        for series in opened.read(names=names):
            row = list(zip(series.times, series.values, strict=True))
            if series.name == TPOT_P99.full_name:
                slow |= {at for at, value in row if value > SLOW_SECONDS}
            elif series.name == KV_USAGE.full_name:
                usage = max(usage, *(value for _, value in row))
            elif series.labels.get("state") == "waiting":
                for at, value in row:
                    waiting[at] += value
            elif "slo" in series.labels:
                events[series.labels["slo"]][series.labels["good"]] += row[-1][1]
    late = {slo: each["false"] / count for slo, each in events.items() if (count := sum(each.values()))}
    return Recorded(tuple(sorted(slow)), usage, max(waiting.values(), default=0.0), late)
