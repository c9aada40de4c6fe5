"""A fleet's store answers as Prometheus does: the pack, the boards and the analysis, over a real remote write."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from click.testing import CliRunner

from alerts.catalogue import RECORDINGS
from tests.evaluation.alike import (
    DRILL,
    OFF_SECONDS,
    Compared,
    Kind,
    Likeness,
    Stage,
    compare,
    questions,
    staged,
)
from thrashold import main

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
_RATE = re.compile(r"\b(rate|increase)\(")
_RECORDED = re.compile(r"\b[a-z_]+:[a-z0-9_:]+\b")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("alike")) as found:
        yield found


@pytest.fixture(scope="module")
def answers(stage: Stage) -> tuple[Compared, ...]:
    return tuple(compare(stage.both, questions(), stage.start + OFF_SECONDS, stage.end))


def _has_rate(text: str) -> bool:
    """Whether an expression takes rates. What was recorded is the same in both: it came from the one."""
    return _RATE.search(text) is not None


def _told(found: Sequence[Compared]) -> str:
    return "\n".join(
        f"{each.question.kind}, {each.question.name}: {each.likeness}; {each.told}" for each in found
    )


def test_every_alert_holds_at_the_same_instants_of_the_same_subjects(answers: tuple[Compared, ...]) -> None:
    alerts = [each for each in answers if each.question.kind is Kind.ALERT]
    other = [each for each in alerts if each.likeness not in {Likeness.SAME, Likeness.VALUES}]
    assert not other, _told(other)
    # and most of them have something to say here
    assert sum(each.series > 0 for each in alerts) > 0.8 * len(alerts)


def test_what_takes_no_rate_is_the_same_to_the_last_digit(answers: tuple[Compared, ...]) -> None:
    other = [
        each for each in answers if each.likeness is not Likeness.SAME and not _has_rate(each.question.text)
    ]
    assert not other, _told(other)


def test_rates_are_of_the_same_subjects_and_add_up_to_the_same(answers: tuple[Compared, ...]) -> None:
    """VictoriaMetrics counts a rise from the sample before the window, and stretches none to the window's edges."""
    rates = [each for each in answers if _has_rate(each.question.text)]
    assert len(rates) > 10
    other = [each for each in rates if each.likeness in {Likeness.SUBJECTS, Likeness.REFUSED}]
    assert not other, _told(other)
    totals = [each.total for each in rates if not math.isnan(each.total)]
    assert len(totals) > 5
    assert all(0.85 < total < 1.15 for total in totals), _told(rates)


def test_what_is_recorded_is_recorded_by_the_pack(answers: tuple[Compared, ...]) -> None:
    """No expression reads a name that nobody records: it would be the same nothing on both."""
    names = {each.name for group in RECORDINGS.values() for each in group.recordings}
    read = {name for each in answers for name in _RECORDED.findall(each.question.text)}
    assert read <= names


def _json(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _differ(here: Any, there: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """Where two answers differ. VictoriaMetrics keeps no more than some thirteen digits of a number.

    Words that tell a value are left out beside it: what lies half way between two is rounded to either.
    """
    if isinstance(here, dict) and isinstance(there, dict) and here.keys() == there.keys():
        for name in here.keys() - ({"words"} if "value" in here else set()):
            yield from _differ(here[name], there[name], f"{path}.{name}")
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for place, (one, other) in enumerate(zip(here, there, strict=True)):
            yield from _differ(one, other, f"{path}[{place}]")
    elif isinstance(here, float) and isinstance(there, float):
        if not math.isclose(here, there, rel_tol=1e-9):
            yield f"{path}: {here} {there}"
    elif here != there:
        yield f"{path}: {here} {there}"


def test_the_analysis_says_the_same_of_both(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    span = (
        "--start",
        f"{stage.start:.3f}",
        "--end",
        f"{stage.end:.3f}",
        "--match",
        f"cluster={DRILL}",
        "--json",
    )
    prometheus, victoria = stage.both.prometheus.url, stage.both.victoria.url
    for command in ("analyze", "anomalies"):
        here, there = (_json(command, url, *span) for url in (prometheus, victoria))
        there = json.loads(json.dumps(there).replace(victoria, prometheus))
        assert not (found := list(_differ(here, there))), "\n".join(found[:10])
        assert "engine-0" in json.dumps(here)
    assert _json("analyze", victoria, *span)["causes"][0]["cause"] == "swap-thrash"


def test_a_backtest_says_the_same_of_both(stage: Stage) -> None:
    prometheus, victoria = stage.both.prometheus.url, stage.both.victoria.url
    span = ("--start", f"{stage.start:.3f}", "--end", f"{stage.end:.3f}", "--json")
    here, there = (_json("backtest", url, *span) for url in (prometheus, victoria))
    assert json.loads(json.dumps(there).replace(victoria, prometheus)) == here
    assert sum(bool(each["episodes"]) for each in here["alerts"]) > 0.8 * len(here["alerts"])
