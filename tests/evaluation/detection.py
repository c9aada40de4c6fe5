"""``python -m tests.evaluation.detection``: scores against labels, and flags over the drill; writes the page.

Exit code 1 where a bar is missed, 2 where the labelled series aren't at hand (see ``tests.evaluation.labelled``).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from analysis.anomaly import Findings, Flag, of_frame
from analysis.frame import Frame
from analysis.history.recorded import recorded
from analysis.judged import judged
from analysis.scores import period, scores
from drill.scenarios.setting import Setting
from exporter.derive.phenomenon import EngineFacts
from tests.evaluation.detection_others import poly, spectral_residual
from tests.evaluation.detection_page import page
from tests.evaluation.labelled import DATA, Labelled, is_there, microsoft, nab, published
from tests.evaluation.playing import ROOT, Case, play
from tests.evaluation.real import write_recording
from tests.evaluation.vus import vus_pr
from tests.support.replay import cycles

PAGE = ROOT / "docs" / "evaluation-detection.md"
BARS = {"microsoft": 0.60, "nab": 0.355, "mean": 0.51}
METHODS = ("POLY", "Sub-PCA", "SR", "MOMENT (FT)", "Series2Graph", "USAD", "CNN", "TimesFM", "IForest")
DAYS = tuple(range(101, 113))
SCENARIOS = ("incident", "overload", "recompute-thrash", "offload-thrash", "engine-restarts", "kv-leak")
CAPTURES = ("vllm-0.8.5-v0-swap", "vllm-0.32.0")

Method = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Scored:
    """Means over a set: over all of it, over the half that was looked at before the setting was frozen, the other."""

    all: float
    developed: float
    held_out: float


@dataclass(frozen=True, slots=True)
class Flagged:
    """What is flagged in a run. ``onset`` and ``end``: seconds since its beginning, None where nothing is wrong."""

    title: str
    onset: float | None
    end: float | None
    findings: Findings
    began: float
    most_of_a_series: int
    most_of_a_signal: int
    returns: tuple[Flag, ...] = ()
    """Begun after the end, and worth what the series was worth before the onset: recoveries taken for onsets."""


def scored(series: Sequence[Labelled], method: Method = scores) -> Scored:
    """VUS-PR of a method; every second series by name, from the first one on, is of the half that was developed on."""
    found = [vus_pr(np.nan_to_num(method(each.values)), each.labels, period(each.values)) for each in series]
    return Scored(float(np.mean(found)), float(np.mean(found[::2])), float(np.mean(found[1::2])))


def flagged(title: str, recording: Path, onset: float | None, end: float | None) -> Flagged:
    """Of a recording, whose times ``onset`` and ``end`` are on the clock."""
    history = recorded(recording)
    findings = of_frame(history.frame)
    began = history.frame.start
    by_series = [len(each.flags) for each in findings.series]
    by_signal: dict[tuple[str, str], int] = {}
    for flag in findings.flags:
        whose = flag.key.label("engine") or flag.key.label("gateway") or flag.key.label("uuid")
        by_signal[flag.key.name, whose] = by_signal.get((flag.key.name, whose), 0) + 1
    return Flagged(
        title,
        None if onset is None else onset - began,
        None if end is None else end - began,
        findings,
        began,
        max(by_series, default=0),
        max(by_signal.values(), default=0),
        _returns(findings, history.frame, onset, end),
    )


def _returns(findings: Findings, frame: Frame, onset: float | None, end: float | None) -> tuple[Flag, ...]:
    if onset is None or end is None:
        return ()
    found = []
    for flag in findings.flags:
        what = judged(flag.key, frame.column(flag.key), frame.step_seconds)
        before = what.values[frame.times < onset] if what is not None else np.empty(0)
        known = before[~np.isnan(before)]
        if flag.start > end and len(known) and known.min() <= flag.value <= known.max():
            found.append(flag)
    return tuple(found)


def drilled(name: str, seed: int) -> Flagged:
    """Of a run of the drill."""
    case = Case(name, Setting(seed=seed))
    run = play(case)
    return flagged(case.title, run.recording, run.truth["onset"], run.truth["end"])


def captured(name: str) -> Flagged:
    """Of a recording of a real engine."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "recording.db"
        write_recording(name, file)
        return flagged(name, file, *overload(name))


def overload(capture: str) -> tuple[float, float]:
    """From when till when a recorded engine was given too much, on the clock."""
    at = [each.at for each in cycles(capture, EngineFacts()) if each.phase == "overload"]
    return at[0], at[-1]


@click.command()
@click.option(
    "--if-there", is_flag=True, help="Leave the page as it is where the labelled series aren't at hand."
)
def main(if_there: bool) -> None:  # noqa: FBT001 - click calls by name
    """Hold detection to its bars."""
    if if_there and not is_there():
        click.echo(f"{DATA} lacks the labelled series: {PAGE.name} stays as it is", err=True)
        return
    if not is_there():
        raise click.UsageError(f"{DATA} lacks the labelled series: name their folder in THRASHOLD_SHARED")
    sets: Mapping[str, Sequence[Labelled]] = {"microsoft": microsoft(), "nab": nab()}
    ours = {name: scored(series) for name, series in sets.items()}
    others: dict[str, tuple[float | None, float]] = {
        method: (None, float(np.mean([published()[each.name][method] for each in sets["nab"]])))
        for method in METHODS
    }
    for name, method in (("POLY", poly), ("SR", spectral_residual)):
        others[name] = (scored(sets["microsoft"], method).all, others[name][1])
    days = [drilled("benign-day", seed) for seed in DAYS]
    runs = [drilled(name, 1) for name in SCENARIOS] + [captured(name) for name in CAPTURES]
    PAGE.write_text(page(ours, others, BARS, (days, runs)), encoding="utf-8")
    click.echo(PAGE)
    reached = {name: each.all for name, each in ours.items()}
    reached["mean"] = sum(reached.values()) / len(reached)
    missed = [f"{name}: {reached[name]:.3f} of {bar:g}" for name, bar in BARS.items() if reached[name] < bar]
    missed += [
        f"{each.title}: {each.most_of_a_series} flags of one series"
        for each in days
        if each.most_of_a_series > 1
    ]
    missed += [f"{each.title}: a recovery is flagged: {flag.words}" for each in runs for flag in each.returns]
    for each in missed:
        click.echo(each, err=True)
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
