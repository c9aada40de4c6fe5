"""Causes over the drill: ``python -m tests.evaluation.causes [--seeds N] [--first N] [--scenario NAME] [PAGE]``.

Plays every scenario with each seed, as it is, moved and with another fault, and holds ``analysis.cascade`` to the
truth: at steps of 1 s and of 15 s, with engines alone, with GPUs alone, and with a hole across the onset. Plays are
kept. Exit code 1 where a bar is missed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from analysis.cascade.ranking import Answer, Ranking, causes
from analysis.frame import Frame
from analysis.history.recorded import recorded
from exporter.source_signals import SOURCE_UP
from tests.evaluation.causes_cases import Wanted, chosen, wanted
from tests.evaluation.causes_page import page
from tests.evaluation.playing import Case, play

ONSET_SECONDS = 15.0
_HOLE_SECONDS = 60.0
_SLOW_STEP = 15.0
_MOST_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one run in one view of it. ``expected``: causes that are true; ``told``: those found, in order.

    ``onsets``: of each true cause that was found, how many seconds after the truth its onset was put.
    ``confidence``: of the first cause told.
    """

    case: Case
    view: str
    expected: tuple[str, ...]
    told: tuple[str, ...]
    answer: str
    onsets: Mapping[str, float]
    confidence: float

    @property
    def right(self) -> bool:
        """All true causes come first; nothing is told where nothing is wrong."""
        if not self.expected:
            return not self.told
        return set(self.told[: len(self.expected)]) == set(self.expected)

    @property
    def right_first(self) -> bool:
        """The first cause told is a true one."""
        return self.right if not self.expected else (self.told[:1] and self.told[0] in self.expected) or False


def evaluated(one: Wanted) -> list[Outcome]:
    """One run in all views."""
    case = chosen(one)
    run = play(case)
    fine = recorded(run.recording).frame
    slow = recorded(run.recording, step_seconds=_SLOW_STEP).frame
    views = {
        "1 s": fine,
        "15 s": slow,
        "engines alone": _engines_alone(fine),
        "GPUs alone": _gpus_alone(fine),
    }
    if run.truth["onset"] is not None:
        views["a hole across the onset"] = _holed(fine, run.truth["onset"])
    return [_outcome(case, view, run.truth, causes(frame)) for view, frame in views.items()]


def _outcome(case: Case, view: str, truth: Mapping[str, Any], found: Ranking) -> Outcome:
    begun = {each.cause.value: each.onset for each in found.found}
    onsets = {
        episode["cause"]: onset - episode["onset"]
        for episode in truth["episodes"]
        if (onset := begun.get(episode["cause"])) is not None
    }
    return Outcome(
        case,
        view,
        tuple(dict.fromkeys(episode["cause"] for episode in truth["episodes"])),
        tuple(begun),
        found.answer.value,
        onsets,
        found.found[0].confidence if found.found else 1.0,
    )


def _engines_alone(frame: Frame) -> Frame:
    """Without GPUs and gateways."""
    sources = set(frame.label_values("source")) - set(frame.label_values("engine"))
    return frame.take(
        [
            place
            for place, key in enumerate(frame.keys)
            if not key.label("uuid") and not key.label("gateway") and key.label("source") not in sources
        ]
    )


def _gpus_alone(frame: Frame) -> Frame:
    """Without engines and gateways."""
    engines = set(frame.label_values("engine"))
    return frame.take(
        [
            place
            for place, key in enumerate(frame.keys)
            if (key.label("uuid") and not key.label("engine"))
            or (key.name == SOURCE_UP.full_name and key.label("source") not in engines)
        ]
    )


def _holed(frame: Frame, onset: float) -> Frame:
    """Nothing is known from a minute before the onset to a minute after it."""
    values = frame.values.copy()
    values[np.abs(frame.times - onset) <= _HOLE_SECONDS] = np.nan
    return Frame(frame.times, frame.step_seconds, frame.keys, values)


def _all(every: Sequence[Wanted]) -> Iterator[Outcome]:
    with (
        ProcessPoolExecutor(min(_MOST_PROCESSES, len(os.sched_getaffinity(0)))) as pool,
        click.progressbar(
            pool.map(evaluated, every), length=len(every), label="plays and ranks", file=sys.stderr
        ) as bar,
    ):
        for outcomes in bar:
            yield from outcomes


def bars(outcomes: Sequence[Outcome]) -> dict[str, tuple[float, float]]:
    """Each bar: what was reached, and what has to be; ratios."""
    plain = [each for each in outcomes if each.view == "1 s"]
    faults = [each for each in plain if each.expected]
    incidents = [each for each in faults if each.case.scenario.startswith("incident")]
    composed = [each for each in faults if len(each.expected) > 1]
    calm = [each for each in plain if not each.expected]
    errors = [abs(error) for each in faults for error in each.onsets.values()]
    return {
        "right first cause, incident family": (_share([each.right_first for each in incidents]), 1.0),
        "right first cause, all faults": (_share([each.right_first for each in faults]), 0.95),
        "both causes first where two are composed": (_share([each.right for each in composed]), 0.95),
        "onset within 15 s of the truth": (_share([error <= ONSET_SECONDS for error in errors]), 0.95),
        "nothing unusual where nothing is wrong": (
            _share([each.answer == Answer.NOTHING_UNUSUAL for each in calm]),
            1.0,
        ),
    }


def _share(held: Sequence[bool]) -> float:
    return sum(held) / len(held) if held else 1.0


@click.command()
@click.option("--seeds", default=4, show_default=True, help="How many, of each scenario.")
@click.option("--first", default=11, show_default=True, help="The first of them.")
@click.option("--scenario", "only", multiple=True, help="Of these only. Repeatable.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def main(seeds: int, first: int, only: tuple[str, ...], file: Path | None) -> None:
    """Hold the ranking of causes to its bars, and write the page."""
    outcomes = list(_all(list(wanted(range(first, first + seeds), only))))
    reached = bars(outcomes)
    written = page(outcomes, reached, (first, first + seeds - 1))
    if file is None:
        click.echo(written)
    else:
        file.write_text(written, encoding="utf-8")
        click.echo(file)
    missed = [
        f"{name}: {value:.1%}, and {least:.0%} it has to be"
        for name, (value, least) in reached.items()
        if value < least
    ]
    for each in missed:
        click.echo(each, err=True)
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
