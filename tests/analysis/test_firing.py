"""The state machine of alerts, beside Prometheus's own."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from analysis.firing import Episode, State, episodes, state
from analysis.firing_spans import firing_spans
from tests.support.prometheus import tool

STEP = 15
LENGTH = 60


def test_it_fires_after_its_time_and_goes_on_for_a_while() -> None:
    holds = np.array([0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0], dtype=bool)
    times = np.arange(holds.size) * float(STEP)
    assert episodes(times, holds) == (Episode(15.0, 15.0, 90.0),)
    assert episodes(times, holds, for_seconds=30) == (Episode(15.0, 45.0, 90.0),)
    assert episodes(times, holds, for_seconds=61) == (Episode(15.0, None, 90.0),)
    assert episodes(times, holds, for_seconds=30, keep_firing_seconds=30) == (Episode(15.0, 45.0, 120.0),)
    assert episodes(times, holds, keep_firing_seconds=600) == (Episode(15.0, 15.0, None),)


def test_a_gap_shorter_than_it_is_kept_is_none_and_what_only_waits_is_not_kept() -> None:
    holds = np.array([1, 1, 1, 0, 1, 1, 1], dtype=bool)
    times = np.arange(holds.size) * float(STEP)
    kept = {"for_seconds": 15, "keep_firing_seconds": 30}
    assert episodes(times, holds, **kept) == (Episode(0.0, 15.0, None),)
    waiting = episodes(times, holds, for_seconds=45, keep_firing_seconds=30)
    assert waiting == (Episode(0.0, None, 45.0), Episode(60.0, None, None))


def test_an_evaluation_that_never_was_changes_nothing() -> None:
    assert episodes([0, 15, 300, 315], [True, True, True, False], for_seconds=60) == (
        Episode(0.0, 300.0, 315.0),
    )


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="one of each"):
        episodes([0, 15], [True])
    with pytest.raises(ValueError, match="in order"):
        episodes([15, 0], [True, True])
    with pytest.raises(ValueError, match="below 0"):
        episodes([0, 15], [True, True], for_seconds=-1)


@given(
    results=some.lists(some.booleans(), min_size=1, max_size=60),
    wait=some.integers(0, 90),
    keep=some.integers(0, 90),
    gaps=some.lists(some.integers(1, 60), min_size=60, max_size=60),
)
def test_it_is_what_an_evaluation_at_a_time_comes_to(
    results: list[bool], wait: int, keep: int, gaps: list[int]
) -> None:
    times = np.cumsum(gaps[: len(results)])
    history = episodes(times, results, for_seconds=wait, keep_firing_seconds=keep)
    found = State.INACTIVE
    active = since = None
    for at, holds in zip(times, results, strict=True):
        if holds:
            since = None
            active = at if found is State.INACTIVE else active
            found = State.FIRING if found is State.FIRING or at - active >= wait else State.PENDING
        elif found is State.FIRING:
            since = at if since is None else since
            found = State.FIRING if at - since < keep else State.INACTIVE
        else:
            found = State.INACTIVE
        assert state(history, float(at)) is found


@given(
    results=some.lists(some.booleans(), min_size=1, max_size=60),
    wait=some.integers(0, 90),
    keep=some.integers(0, 90),
    gaps=some.lists(some.integers(1, 60), min_size=60, max_size=60),
)
def test_spans_of_a_grid_are_those_of_its_episodes(
    results: list[bool], wait: int, keep: int, gaps: list[int]
) -> None:
    times = np.cumsum(gaps[: len(results)])
    history = episodes(times, results, for_seconds=wait, keep_firing_seconds=keep)
    (found,) = firing_spans(times, results, [(wait, keep)])
    wanted = [
        (each.fired_at, np.inf if each.ended_at is None else each.ended_at)
        for each in history
        if each.fired_at is not None
    ]
    assert found.tolist() == [list(each) for each in wanted]


def _case(chance: random.Random) -> dict[str, Any]:
    """Values that come and go, more or less often, some of them gone stale."""
    stays = chance.choice([0.5, 0.8, 0.95])
    values = ["1"]
    while len(values) < LENGTH:
        values.append(values[-1] if chance.random() < stays else chance.choice(["0", "1", "stale"]))
    return {
        "values": values,
        "for": chance.choice([0, 10, 15, 40, 60, 120]),
        "keep": chance.choice([0, 15, 20, 60, 180]),
    }


def test_prometheus_says_the_same_of_many_histories(tmp_path: Path) -> None:
    """Sixty at once, pending and firing, after every evaluation."""
    chance = random.Random(20261130)  # noqa: S311 -- histories, no secrets
    cases = [_case(chance) for _ in range(60)]
    groups = []
    for number, case in enumerate(cases):
        rule = {"alert": f"A{number}", "expr": f"v{number} > 0", "for": f"{case['for']}s"}
        rule |= {"keep_firing_for": f"{case['keep']}s"} if case["keep"] else {}
        groups.append({"name": f"g{number}", "rules": [rule]})
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": groups}))
    checks: list[dict[str, Any]] = []
    told = 0
    times = np.arange(LENGTH) * float(STEP)
    histories = [
        episodes(
            times,
            [value == "1" for value in case["values"]],
            for_seconds=case["for"],
            keep_firing_seconds=case["keep"],
        )
        for case in cases
    ]
    for at in range(0, LENGTH * STEP, STEP):
        wanted = []
        for number, history in enumerate(histories):
            found = state(history, float(at))
            if found is not State.INACTIVE:
                labels = f'ALERTS{{alertname="A{number}", alertstate="{found.value}"}}'
                wanted.append({"labels": labels, "value": 1})
        told += len(wanted)
        checks.append({"expr": "ALERTS", "eval_time": f"{at}s", "exp_samples": wanted})
    test = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": f"{STEP}s",
        "tests": [
            {
                "interval": f"{STEP}s",
                "input_series": [
                    {"series": f"v{number}", "values": " ".join(case["values"])}
                    for number, case in enumerate(cases)
                ],
                "promql_expr_test": checks,
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    tested = subprocess.run(
        [tool("promtool"), "test", "rules", tmp_path / "test.yml"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert tested.returncode == 0, tested.stderr[-3000:] + tested.stdout[-3000:]
    assert told > 1000
