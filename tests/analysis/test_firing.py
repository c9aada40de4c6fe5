"""The state machine of alerts, beside Prometheus's own."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from analysis.firing import Episode, State, episodes, state
from analysis.firing_spans import firing_spans
from tests.support.alert_cases import by_promtool, cases

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


def test_prometheus_says_the_same_of_many_histories(tmp_path: Path) -> None:
    """Sixty at once, pending and firing, after every evaluation."""
    chance = random.Random(20261130)  # noqa: S311 -- histories, no secrets
    every = cases(60, LENGTH, chance, (0, 10, 15, 20, 40, 60, 120, 180))
    complaints, told = by_promtool(every, STEP, tmp_path)
    assert complaints == ""
    assert told > 1000


def test_what_waited_long_enough_before_a_restart_goes_on_waiting() -> None:
    times = np.arange(0, 3000, 60)
    holds = np.ones(len(times), dtype=bool)
    (unbroken,) = episodes(times, holds, for_seconds=1200)
    assert unbroken.fired_at == 1200
    before, after = episodes(times, holds, for_seconds=1200, restarts=[590])
    assert (before.fired_at, before.ended_at, after.active_at) == (None, 600, 600)
    # 540 s were waited before; those of the outage, and until it is restored, come on top
    assert after.fired_at == 1200 + 120 + 60
    # of less than the grace period nothing is restored
    assert episodes(times, holds, for_seconds=540, restarts=[590])[1].fired_at == 600 + 540
    # and nothing after an outage that was too long
    gone = times[(times < 600) | (times > 600 + 3600)]
    late = np.append(gone, np.arange(6000, 9000, 60))
    assert episodes(late, np.ones(len(late)), for_seconds=1200, restarts=[5990])[1].fired_at == 6000 + 1200


def test_what_fired_before_a_restart_fires_again_when_it_is_restored() -> None:
    times = np.arange(0, 3000, 60)
    holds = np.ones(len(times), dtype=bool)
    before, after = episodes(times, holds, for_seconds=600, restarts=[1790])
    assert (before.fired_at, before.ended_at) == (600, 1800)
    assert (after.active_at, after.fired_at, after.ended_at) == (1800, 1800 + 120, None)
    nothing = episodes(times, times < 1500, for_seconds=600, restarts=[1790])
    assert nothing == (Episode(0.0, 600.0, 1500.0),)
