"""How unusual services and workers are, whatever their units, and who is to blame for whom."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.cascade.surprise import Strain, event_surprise, surprise, suspects, workers
from analysis.history.recorded import recorded
from tests.analysis.cascade.histories import drilled

USUAL = np.random.default_rng(1).normal(100.0, 5.0, 500)


@given(unit=st.sampled_from([1e-9, 1e-3, 1.0, 2.0**30]), value=st.floats(0.0, 500.0))
def test_a_surprise_has_no_unit(unit: float, value: float) -> None:
    one = np.array([value])
    assert surprise(one * unit, USUAL * unit) == pytest.approx(surprise(one, USUAL), rel=1e-6)


def test_what_is_not_known_is_no_surprise_and_what_never_moved_is_a_large_one() -> None:
    nothing = np.full(5, np.nan)
    assert surprise(nothing, USUAL) == 0.0
    assert surprise(USUAL, nothing) == 0.0
    assert surprise(np.array([0.0, 1e-6]), np.zeros(100)) == 1000.0


def test_failures_are_counted() -> None:
    """One failure where there never was one is no event yet; twenty are, whatever the ratio."""
    none = np.zeros(100)
    assert event_surprise(np.array([1.0]), none) == 1.0
    assert event_surprise(np.array([20.0]), none) == 20.0
    assert event_surprise(np.array([0.0]), np.full(100, 50.0)) == 0.0


def test_blame_goes_down_to_the_callee_that_accounts_for_most_of_it() -> None:
    calls = {"site": {"pay", "search"}, "pay": {"queue", "table"}, "search": {"pay"}}
    strained = {
        "site": Strain(20.0, 100.0),
        "pay": Strain(40.0, 90.0),
        "table": Strain(30.0, 80.0),
        "queue": Strain(500.0, 1.0),  # most unusual of all, and next to nothing of what is too much
        "search": Strain(1.0, 95.0),
        "elsewhere": Strain(90.0, 0.0),
    }
    assert suspects(calls, "site", strained) == ("table", "pay", "site", "queue", "elsewhere", "search")


def test_calls_in_a_circle_and_a_target_that_nobody_tells_of_end() -> None:
    circle = {"a": {"b"}, "b": {"a"}}
    assert suspects(circle, "a", {"b": Strain(5.0, 1.0)}) == ("b", "a")
    assert suspects({}, "a", {}) == ("a",)


def test_the_engine_that_stands_still_is_the_most_unusual_one() -> None:
    run = drilled("engine-frozen", "pcie-other-tenant", engines=3)
    frame = recorded(run.recording).frame
    onset = run.truth["onset"]
    ranked = workers(frame.between(onset, onset + 120.0), frame.between(frame.start + 60.0, onset))
    engines = [each.name for each in ranked if each.label == "engine"]
    assert engines[0] == "engine-0"
    assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)
