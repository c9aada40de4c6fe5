"""A report of every engine that is read, whatever it leaves out: it is made, fits a terminal, and is JSON."""

from __future__ import annotations

import json

import click
import pytest

from alerts.thresholds import THRESHOLDS
from alerts.triage.as_json import as_json
from alerts.triage.look import Look
from alerts.triage.report import report
from alerts.triage.text import WIDTH, text
from tests.alerts.triage.looks import alone, beside
from tests.support.captures import NAMES
from tests.support.pages import AT, WRITTEN, advanced, read, written
from tests.support.replay import replayed


def made(look: Look) -> str:
    whole = report(look, THRESHOLDS)
    shown = click.unstyle(text(whole))
    assert max(map(len, shown.splitlines())) <= WIDTH, shown
    said = json.loads(as_json(whole))
    assert said["verdict"] == whole.verdict.name
    assert said["exit_code"] == whole.verdict.exit_code == int(said["finding"] is not None)
    return shown


@pytest.mark.parametrize("name", sorted(path.stem for path in WRITTEN.glob("*.prom")))
def test_of_a_written_page(name: str) -> None:
    body = written(name)
    shown = made(alone([read(body), read(advanced(body, 1.0), AT + 1.0)]))
    assert "\nVERDICT  " in shown


@pytest.mark.parametrize("name", NAMES)
def test_of_a_recorded_engine_at_its_busiest(name: str) -> None:
    cycles = replayed(name)
    place = max(
        range(1, len(cycles)), key=lambda at: sum(rank.running or 0.0 for rank in cycles[at].sample.ranks)
    )
    before, now = cycles[place - 1 : place + 1]
    pair = (before.sample, now.sample)
    for look in (alone(pair), beside(pair, before.snapshot, now.snapshot)):
        assert "\n4 zero swap" in made(look)


def test_ranks_are_judged_each_by_itself_and_the_fullest_is_shown() -> None:
    cycles = replayed("vllm-0.32.0-dp2-api2")
    place = max(
        range(1, len(cycles)),
        key=lambda at: max(rank.kv_usage_ratio or 0.0 for rank in cycles[at].sample.ranks),
    )
    pair = [each.sample for each in cycles[place - 1 : place + 1]]
    fullest = max(pair[-1].ranks, key=lambda rank: rank.kv_usage_ratio or 0.0)
    assert f"the fullest of 2 ranks: rank {fullest.rank} of {fullest.model_name}" in made(alone(pair))
