"""Key metrics beside the truth of drills: ``python -m tests.evaluation.key_metrics [--seeds N]``.

Gauges at their worst, counters over the incident, both over the time that the analysis itself takes it to have lasted.
Exit code 1 where one is more than 5 % off, unless it is one that engines themselves tell late, and in part never:
a preemption is counted with the sequence's next output.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from analysis.history.recorded import recorded
from analysis.incident.key_metrics import key_metrics
from analysis.incident.phase import Incident
from analysis.incident.phases import incidents
from analysis.incident.subject import fleet
from drill.scenarios.setting import Setting
from exporter.signal import Confidence
from tests.evaluation.playing import Case, Run, play

MOST_ERROR = 0.05
SCENARIOS = ("incident", "overload", "retry-storm", "recompute-thrash")
_UNANSWERED = ("timed_out", "rejected", "failed")


@dataclass(frozen=True, slots=True)
class Compared:
    """``told``: what the table says; ``truth``: what the drill knows."""

    title: str
    told: float
    truth: float
    lagging: bool = False

    @property
    def error(self) -> float:
        """As a share of the truth; of nothing any difference is all of it."""
        if not self.truth:
            return float(bool(self.told))
        return abs(self.told - self.truth) / abs(self.truth)


def compared(run: Run) -> Iterator[Compared]:
    """Of the first incident of a run; none where none is found."""
    frame = recorded(run.recording).frame
    found = incidents(frame).fleet
    if not found:
        return
    rows = {row.title: row for row in key_metrics(fleet(frame), found[0])}
    for title, truth in _truths(run.truth, found[0]).items():
        row = rows.get(title)
        if row is not None and row.peak.value is not None:
            yield Compared(title, row.peak.value, truth, row.confidence is Confidence.LAGGING)


def _truths(truth: Mapping[str, Any], incident: Incident) -> dict[str, float]:
    begin = incident.begin.at
    end: float = incident.end.at if incident.end is not None else truth["seconds"][-1]
    places = [place for place, at in enumerate(truth["seconds"]) if begin <= at <= end]

    def each(column: str) -> list[list[float]]:
        return [[engine[column][place] or 0.0 for place in places] for engine in truth["engines"].values()]

    def most_together(column: str) -> float:
        return max(sum(now, 0.0) for now in zip(*each(column), strict=True))

    told = truth["fleet"]
    before, last = max(0, places[0] - 1), places[-1]
    return {
        "sessions in flight": max(told["sessions"][place] for place in places),
        "waiting sequences": most_together("waiting"),
        "swapped sequences": most_together("swapped"),
        "KV usage, fullest": max(max(values) for values in each("kv_usage_ratio")),
        "preemptions": sum(sum(values) for values in each("preemptions")),
        "client requests hit": sum(told[name][last] - told[name][before] for name in _UNANSWERED),
    }


@click.command()
@click.option("--seeds", default=5, show_default=True, help="How many of each scenario.")
@click.option("--scenario", "scenarios", multiple=True, default=SCENARIOS, show_default=True)
def main(seeds: int, scenarios: Sequence[str]) -> None:
    """Print the largest error of each figure."""
    worst: dict[tuple[str, str], Compared] = {}
    for scenario in scenarios:
        for seed in range(1, seeds + 1):
            for each in compared(play(Case(scenario, Setting(seed=seed)))):
                known = worst.get((scenario, each.title))
                if known is None or each.error > known.error:
                    worst[scenario, each.title] = each
    for (scenario, title), each in worst.items():
        late = "  (told late)" if each.lagging else ""
        figures = f"told {each.told:12,.4g}  true {each.truth:12,.4g}"
        click.echo(f"{scenario:18} {title:22} {each.error:6.1%}  {figures}{late}")
    sys.exit(any(each.error > MOST_ERROR and not each.lagging for each in worst.values()))


if __name__ == "__main__":
    main()
