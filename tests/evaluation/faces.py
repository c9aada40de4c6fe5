"""Do both faces of every alert's condition say the same of what a drill shows?

    python -m tests.evaluation.faces [SCENARIO ...]

Two scenarios are scraped as two clusters, whose engines, GPUs and gateways bear the same names; each engine has two
ranks, the second with what its neighbour showed some scrapes before. Scrapes fail, and single series vanish. A real
Prometheus says when ``promql()`` is true, and ``holds()`` is asked of the same values. Once with the thresholds that
are shipped, and once with medians of what was seen, so that conditions change as often as they can.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from alerts.alert import Alert, Expression
from alerts.catalogue import ALERTS
from alerts.conditions import All, Compare, Condition, OnGpus, Reading, Recorded, Rendering, Unless, leaves
from alerts.thresholds import THRESHOLDS, Thresholds
from analysis.backtest.subjects import Subject, Subjects, series_name
from analysis.frame import Frame, Key, on_grid
from drill.playing.play import Play
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting
from exporter.signal import PEAK_SUFFIX, Kind
from tests.bench.report import line
from tests.support.prometheus import Prometheus, openmetrics, serving

STEP, LOOKBACK = 15, 60
START = 1_790_000_010
"""A whole number of steps since the epoch."""
CLUSTERS = ("east", "west")
TREES: Mapping[str, Alert] = {
    name: alert for name, alert in ALERTS.items() if not isinstance(alert.condition, Expression)
}
_SHIFTED_SCRAPES = 3
_MODEL = "model_name"
Labels = tuple[tuple[str, str], ...]
Row = dict[int, float]
Data = dict[tuple[str, Labels], Row]
"""By name and labels: values by the time they were scraped."""


def scraped(cluster: str, scenario: str, setting: Setting, seconds: int | None, seed: int) -> Data:
    """What a Prometheus has of a scenario: every 15 s, not at the instants at which rules are evaluated."""
    chance = random.Random(f"{cluster} {scenario} {seed}")  # noqa: S311 -- repeatable
    offset = chance.randrange(1, STEP)
    scene = SCENARIOS[scenario].scene(setting)
    play = Play(replace(scene, seconds=min(scene.seconds, seconds or scene.seconds)), setting.seed)
    data: Data = {}
    for moment in play.moments():
        second = round(moment.second.seconds)
        if second % STEP != offset:
            continue
        for value in moment.snapshot.values:
            if value.signal.kind is not Kind.GAUGE:
                continue
            name = value.signal.full_name + (PEAK_SUFFIX if value.is_peak else "")
            labels = dict(zip(value.signal.label_names, value.labels, strict=True)) | {"cluster": cluster}
            data.setdefault((name, tuple(sorted(labels.items()))), {})[START + second] = value.value
    data |= _second_ranks(data)
    return _with_gaps(data, chance)


def _second_ranks(data: Data) -> Data:
    """What an engine's neighbour showed, as the engine's second rank."""
    engines = sorted({dict(labels)["engine"] for _, labels in data if "engine" in dict(labels)})
    found: Data = {}
    for (name, labels), row in data.items():
        told = dict(labels)
        if "rank" in told:
            after = engines[(engines.index(told["engine"]) + 1) % len(engines)]
            as_other = tuple(sorted((told | {"engine": after, "rank": "1"}).items()))
            found[name, as_other] = {at + _SHIFTED_SCRAPES * STEP: value for at, value in row.items()}
    return found


def _with_gaps(data: Data, chance: random.Random) -> Data:
    """Without what scrapes of an engine's sidecar missed, and what single series lacked for minutes."""
    times = sorted({at for row in data.values() for at in row})
    missed: dict[str, set[int]] = {}
    kept: Data = {}
    for (name, labels), row in sorted(data.items()):
        target = dict(labels).get("engine", "")
        if target not in missed:
            missed[target] = set(_gaps(times, chance, 0.04))
        gone = missed[target] | (set(_gaps(times, chance, 0.03)) if chance.random() < 0.3 else set())
        left = {at: value for at, value in row.items() if at not in gone}
        if left:
            kept[name, labels] = left
    return kept


def _gaps(times: Sequence[int], chance: random.Random, often: float) -> Iterator[int]:
    left = 0
    for at in times:
        left = left - 1 if left else (chance.choice((1, 2, 9)) if chance.random() < often else 0)
        if left:
            yield at


def sound(condition: Condition) -> bool:
    """Whether the largest value of each reading is all that it takes.

    What is joined and speaks of something narrower is true of any of it: one comparison whose largest value counts.
    """
    if isinstance(condition, Compare | OnGpus):
        return True
    if isinstance(condition, Recorded):
        return sound(condition.of)
    if isinstance(condition, All | Unless):
        narrower = [part for part in condition.parts if set(part.scope.labels) > set(condition.scope.labels)]
        if any(not isinstance(part, Compare) or part.operator not in {">", ">="} for part in narrower):
            return False
    return all(sound(part) for part in getattr(condition, "parts", ()))


@dataclass(frozen=True, slots=True)
class Compared:
    """Of one alert: at how many instants of all subjects it is true, of how many, and at how many faces differ."""

    alert: str
    true: int
    asked: int
    differ: tuple[str, ...]

    @property
    def switches(self) -> bool:
        """Whether it was true of something, and false."""
        return 0 < self.true < self.asked


def compared(alert: Alert, data: Data, server: Prometheus, thresholds: Thresholds) -> Compared:
    """Both faces of an alert at every instant. Raises ValueError: a tree of which ``holds`` can't be asked so."""
    condition = alert.condition
    if isinstance(condition, Expression) or not sound(condition):
        raise ValueError(f"{alert.name} is no tree whose readings' largest values tell all")
    rendering = Rendering(thresholds)
    names = rendering.labels(condition.scope)
    instants = grid(data)
    told = server.query_range(condition.promql(rendering), instants[0], instants[-1], STEP)
    said = {
        tuple(dict(labels).get(name, "") for name in names): {int(at) for at in row}
        for labels, row in told.items()
    }
    known = Subjects(frame(data), cluster_labels=rendering.cluster_labels, lookback_seconds=LOOKBACK)
    found = {tuple(each.labels.values()) for each in known.of(condition)}
    asked = subjects(names, data)
    differ = [f"{alert.name}: {subject} is told of, and isn't there" for subject in said.keys() - found]
    true = 0
    for subject in sorted(asked):
        values = Subject(known, dict(zip(names, subject, strict=True)))
        truth = np.broadcast_to(condition.holds(values, thresholds), len(instants))
        holds = {at for at, is_true in zip(instants, truth, strict=True) if is_true}
        true += len(holds)
        wrong = holds ^ said.get(subject, set())
        differ += [f"{alert.name} of {subject} at {at}: holds is {at in holds}" for at in sorted(wrong)]
    return Compared(alert.name, true, len(asked) * len(instants), tuple(differ))


def grid(data: Data) -> list[int]:
    """Instants at which rules are evaluated, from before the first scrape to when the last is forgotten."""
    last = max(at for row in data.values() for at in row)
    return list(range(START, last + 2 * LOOKBACK, STEP))


def frame(data: Data) -> Frame:
    """The same as an analysis has it."""
    instants = np.asarray(grid(data), dtype=np.float64)
    values = np.empty((len(instants), len(data)), order="F")
    for place, row in enumerate(data.values()):
        times = sorted(row)
        values[:, place] = on_grid(
            instants, np.asarray(times, np.float64), np.asarray([row[at] for at in times]), STEP
        )
    return Frame(instants, float(STEP), tuple(Key(name, labels) for name, labels in data), values)


def subjects(names: Sequence[str], data: Data) -> set[tuple[str, ...]]:
    """All that have these labels and of which anything was scraped."""
    return {
        tuple(told[name] for name in names)
        for _, labels in data
        if set(names) <= (told := dict(labels)).keys()
    }


def medians(data: Data, alerts: Iterable[Alert]) -> Thresholds:
    """Thresholds amid what was seen of the signals that they are compared with, as far as they may be there."""
    seen: dict[str, list[float]] = {}
    for alert in alerts:
        if not isinstance(alert.condition, Expression):
            for leaf in leaves(alert.condition):
                if isinstance(leaf.limit, str):
                    seen.setdefault(leaf.limit, []).extend(_values(leaf.reading, data))
    return replace(THRESHOLDS, **{name: median(values) for name, values in seen.items() if values})


def _values(reading: Reading, data: Data) -> list[float]:
    name = series_name(reading)
    return [
        value
        for (called, labels), row in data.items()
        if called == name and set(reading.where) <= set(labels)
        for value in row.values()
    ]


def two_clusters(scenarios: tuple[str, str], setting: Setting, seconds: int | None = None) -> Data:
    """One scenario a cluster."""
    data: Data = {}
    for cluster, scenario in zip(CLUSTERS, scenarios, strict=True):
        data |= scraped(cluster, scenario, setting, seconds, setting.seed)
    return data


def sweep(scenarios: Sequence[str]) -> int:
    """All of them, two by two; gives how many alerts differ anywhere."""
    found: dict[str, list[Compared]] = {name: [] for name in TREES}
    pairs = [(first, scenarios[(place + 1) % len(scenarios)]) for place, first in enumerate(scenarios)][::2]
    for place, pair in enumerate(pairs, 1):
        line(f"{place} of {len(pairs)}: {pair[0]} and {pair[1]}")
        data = two_clusters(pair, Setting(engines=2))
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder) / "data.om"
            dump.write_text(openmetrics(data))
            with serving(dump, Path(folder)) as server:
                for thresholds in (THRESHOLDS, medians(data, TREES.values())):
                    for name, alert in TREES.items():
                        found[name].append(compared(alert, data, server, thresholds))
    wide = max(len(name) for name in found)
    for name, rows in found.items():
        true, asked = sum(row.true for row in rows), sum(row.asked for row in rows)
        wrong = [words for row in rows for words in row.differ]
        line(f"{name:{wide}}  true at {true:6} of {asked:6} instants, {len(wrong)} differ")
        for words in wrong[:3]:
            line(f"    {words}")
    return sum(any(row.differ for row in rows) for rows in found.values())


def main() -> int:
    """The command."""
    asked = sys.argv[1:] or sorted(SCENARIOS)
    unknown = sorted(set(asked) - SCENARIOS.keys())
    if unknown:
        sys.stderr.write(f"no scenario {', '.join(unknown)}: there are {', '.join(sorted(SCENARIOS))}\n")
        return 2
    return int(sweep(asked) > 0)


if __name__ == "__main__":
    sys.exit(main())
