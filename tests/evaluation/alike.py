"""The same questions to a Prometheus and to a store of a fleet: every expression of the pack and of the boards.

What both hold is a drill's incident as it was scraped, engines of other kinds, a series for every signal that these
haven't, and what the pack's rules record of it all. ``python -m tests.evaluation.alike`` says how alike answers are.
"""

from __future__ import annotations

import contextlib
import math
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from alerts.catalogue import ALERTS, RECORDINGS
from alerts.pack_settings import PackSettings
from dashboards.catalogue import boards
from dashboards.lint.finding import panels_of
from dashboards.queries import interpolated
from exporter.recorder_export import export_openmetrics
from exporter.recorder_reader import Recording
from tests.dashboards import past
from tests.evaluation.playing import Case, play
from tests.support.mirrored import Mirrored, mirrored
from tests.support.prometheus import Labels, Prometheus
from tests.support.scraped import Scraped

SCRAPE_SECONDS = 15
OFF_SECONDS = 7.4
"""From a scrape to where questions are asked: what stands at the very edge of a window is in it for one of them."""
_TO_COME_SECONDS = 304.6
"""For what both hold to be put together: it has to be of the time to come. No scrape is at whole steps."""
DRILL = "drill"
LABELS = {"cluster": DRILL, "instance": "drill:9807", "job": "thrashold"}
_EVERYTHING = {"cluster": ".*", "engine": ".*", "instance": ".*"}
_INTERVAL = "60s"
_EXACT = 1e-9
_GROWN_SECONDS = 300.0
Answer = dict[Labels, dict[float, float]]


class Kind(StrEnum):
    """Where an expression stands."""

    ALERT = "alerts"
    RECORDING = "recorded"
    PANEL = "panels of the boards"


@dataclass(frozen=True, slots=True)
class Question:
    """An expression, and what it is called."""

    kind: Kind
    name: str
    text: str


class Likeness(StrEnum):
    """Of two answers, from like to unlike."""

    SAME = "the same"
    VALUES = "the same subjects and instants, other values"
    INSTANTS = "the same subjects, at some other instants"
    SUBJECTS = "other subjects"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Compared:
    """One question's two answers. ``worst``: the largest relative difference of values; ``told``: an example.

    ``total``: the sum of all values in the one over that in the other, of series from five minutes on, the longest time
    that a rate of the drill is taken over; not a number where there is none.
    """

    question: Question
    likeness: Likeness
    series: int
    worst: float
    total: float
    told: str


def questions() -> tuple[Question, ...]:
    """All that are shipped."""
    settings = PackSettings()
    rendering = settings.rendering
    found = [Question(Kind.ALERT, alert.name, alert.promql(rendering)) for alert in ALERTS.values()]
    found += [
        Question(Kind.RECORDING, each.name, each.promql(rendering))
        for group in RECORDINGS.values()
        for each in group.recordings
    ]
    for name, board in boards(settings).items():
        for panel in panels_of(board.to_json()):
            found += [
                Question(
                    Kind.PANEL,
                    f"{name} / {panel['title']} / {target['refId']}",
                    interpolated(str(target["expr"]), _EVERYTHING, _INTERVAL),
                )
                for target in panel["targets"]
            ]
    return tuple(found)


def history(folder: Path, start: float, case: Case | None = None) -> tuple[Scraped, float]:
    """What both are to hold, from ``start`` on, and the instant up to which they hold it."""
    kept = Scraped()
    dump = folder / "drill.om"
    with Recording(play(case or Case("incident")).recording) as opened, dump.open("wb") as out:
        export_openmetrics(opened, out)
    kept.add_recording(dump, SCRAPE_SECONDS, None, **LABELS)
    first, last = kept.span()
    _move(kept, start - first)
    end = start + last - first
    others = past.past(each.text for each in questions())
    _move(others, end - past.END)
    for name, family in others.series.items():
        for labels, points in family.items():
            kept.series[name][labels] += points
    recorded = folder / "recorded"
    recorded.mkdir()
    past.record(kept, recorded, start, end)
    return kept, end


def _move(kept: Scraped, by: float) -> None:
    for family in kept.series.values():
        for labels, points in family.items():
            family[labels] = [(at + by, value) for at, value in points]


def compare(both: Mirrored, asked: Sequence[Question], start: float, end: float) -> Iterator[Compared]:
    """Each question to both, as often as they were scraped and at no instant of a scrape.

    What stands at the very beginning of a window is in it for Prometheus before 3.0, and for others isn't.
    """
    for question in asked:
        expected = _answer(both.prometheus, question, start, end)
        try:
            found = _answer(both.victoria, question, start, end)
        except AssertionError as refused:
            yield Compared(question, Likeness.REFUSED, len(expected), math.nan, math.nan, str(refused)[:200])
            continue
        yield _compared(question, expected, found)


def _answer(server: Prometheus, question: Question, start: float, end: float) -> Answer:
    """By labels without the name: functions over time keep it there, and rules and legends do without."""
    asked = server.query_range(question.text, start, end, SCRAPE_SECONDS)
    return {
        tuple(each for each in labels if each[0] != "__name__"): values for labels, values in asked.items()
    }


def _compared(question: Question, expected: Answer, found: Answer) -> Compared:
    if expected.keys() != found.keys():
        more, less = found.keys() - expected.keys(), expected.keys() - found.keys()
        told = [f"besides: {dict(each)}" for each in sorted(more)[:2]]
        told += [f"not: {dict(each)}" for each in sorted(less)[:2]]
        return Compared(question, Likeness.SUBJECTS, len(expected), math.nan, math.nan, "; ".join(told))
    instants = Counter[str]()
    worst, told_of, sums = 0.0, "", [0.0, 0.0]
    for labels, values in expected.items():
        others = found[labels]
        for at in values.keys() ^ others.keys():
            instants["more" if at in others else "fewer"] += 1
        for at in values.keys() & others.keys():
            off = _off(values[at], others[at])
            if off > worst:
                worst, told_of = off, f"{others[at]:g} for {values[at]:g} of {dict(labels)}"
            if at > min(values) + _GROWN_SECONDS:
                sums = [sums[0] + values[at], sums[1] + others[at]]
    total = sums[1] / sums[0] if sums[0] else math.nan
    likeness = Likeness.SAME if worst <= _EXACT else Likeness.VALUES
    if instants:
        likeness = Likeness.INSTANTS
        counted = ", ".join(f"{count} instants {kind}" for kind, count in sorted(instants.items()))
        told_of = f"{counted}, of {sum(map(len, expected.values()))}; {told_of}"
    return Compared(question, likeness, len(expected), worst, total, told_of)


def _off(expected: float, found: float) -> float:
    if expected == found or (math.isnan(expected) and math.isnan(found)):
        return 0.0
    if not (math.isfinite(expected) and math.isfinite(found)):
        return math.inf
    return abs(found - expected) / max(abs(expected), 1e-12)


def by_kind(found: Sequence[Compared]) -> dict[Kind, Counter[Likeness]]:
    """How many of each."""
    told: dict[Kind, Counter[Likeness]] = defaultdict(Counter)
    for each in found:
        told[each.question.kind][each.likeness] += 1
    return told


@dataclass(frozen=True, slots=True)
class Stage:
    """Both servers, and from when to when they hold something."""

    both: Mirrored
    start: float
    end: float


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """Both, filled. Raises RuntimeError: that took so long that what they should hold is past."""
    start = time.time() // SCRAPE_SECONDS * SCRAPE_SECONDS + _TO_COME_SECONDS
    kept, end = history(folder, start)
    if time.time() > start:
        raise RuntimeError("put together too late: a Prometheus writes on only what is newer than itself")
    with mirrored(kept, folder, SCRAPE_SECONDS) as both:
        yield Stage(both, start, end)


def main() -> None:
    """Prints how many answers are how alike, and each that isn't the same."""
    with tempfile.TemporaryDirectory() as name, staged(Path(name)) as stage:
        found = tuple(compare(stage.both, questions(), stage.start + OFF_SECONDS, stage.end))
    lines = [
        f"{kind}: {count} {likeness}"
        for kind, counts in by_kind(found).items()
        for likeness, count in counts.most_common()
    ]
    lines += [
        f"{each.question.kind}, {each.question.name}: {each.likeness}, {each.total:.2f} in all; {each.told}"
        for each in found
        if each.likeness is not Likeness.SAME
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
