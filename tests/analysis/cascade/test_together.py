"""Where several numbers begin to leave what was usual together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.cascade.together import Course, bend_of_all

TIMES = 1_800_000_000.0 + np.arange(300.0)
CLOCK = np.arange(300)


@settings(max_examples=25, deadline=None)
@given(corner=st.integers(80, 200), chance=st.integers(0, 2**31))
def test_one_that_tells_exactly_is_not_outvoted_by_one_that_jumps_about(corner: int, chance: int) -> None:
    generator = np.random.default_rng(chance)
    exact = np.where(corner <= CLOCK, 10.0, 0.0) + generator.normal(0.0, 1.0, 300)
    wild = np.cumsum(generator.normal(0.0, 1.0, 300))
    found = bend_of_all(TIMES, [Course(wild), Course(exact)], TIMES[0], TIMES[-1])
    assert found is not None
    assert found.at == pytest.approx(TIMES[corner], abs=3.0)


@settings(max_examples=25, deadline=None)
@given(corner=st.integers(80, 200), window=st.sampled_from([30.0, 60.0]), chance=st.integers(0, 2**31))
def test_a_step_in_a_trailing_mean_begins_where_the_mean_begins_to_move(
    corner: int, window: float, chance: int
) -> None:
    noise = np.random.default_rng(chance).normal(0.0, 0.02, 300)
    mean = 1.0 - np.clip((CLOCK - corner) / window, 0.0, 1.0) + noise
    found = bend_of_all(TIMES, [Course(mean, -1, window_seconds=window)], TIMES[0], TIMES[-1])
    assert found is not None
    assert found.at == pytest.approx(TIMES[corner], abs=4.0)


def test_what_moves_the_other_way_is_not_taken() -> None:
    fell_then_rose = np.where(CLOCK < 100, 0.0, np.where(CLOCK < 200, -10.0, 20.0))
    found = bend_of_all(TIMES, [Course(fell_then_rose, 1)], TIMES[0], TIMES[-1])
    assert found is not None
    assert found.at == pytest.approx(TIMES[200], abs=2.0)


def test_nothing_is_found_after_the_latest_or_where_nothing_is_known() -> None:
    step = np.where(CLOCK >= 200, 1.0, 0.0)
    found = bend_of_all(TIMES, [Course(step)], TIMES[0], TIMES[-1], TIMES[150])
    assert found is None or found.at <= TIMES[150]
    assert (
        bend_of_all(TIMES, [Course(np.full(300, np.nan)), Course(np.ones(300))], TIMES[0], TIMES[-1]) is None
    )
