"""Where a number begins to leave what was usual."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.cascade.bends import bend

TIMES = 1_800_000_000.0 + np.arange(300.0)


@settings(max_examples=40, deadline=None)
@given(
    corner=st.integers(60, 200),
    level=st.floats(-100, 100),
    slope=st.sampled_from([-3.0, -1.0, 1.0, 5.0]),
    step=st.sampled_from([1, 5]),
    chance=st.integers(0, 2**31),
)
def test_the_corner_of_a_ramp_is_found(
    corner: int, level: float, slope: float, step: int, chance: int
) -> None:
    noise = np.random.default_rng(chance).normal(0.0, abs(slope), len(TIMES))
    values = level + noise + slope * np.maximum(0.0, np.arange(300) - corner)
    found = bend(TIMES[::step], values[::step], TIMES[0], TIMES[-1])
    assert found is not None
    assert found.at == pytest.approx(TIMES[corner], abs=8.0 + step)
    assert found.strength > 5.0


@settings(max_examples=40, deadline=None)
@given(edge=st.integers(20, 280), height=st.sampled_from([-8.0, 8.0, 1e9]), chance=st.integers(0, 2**31))
def test_the_edge_of_a_step_is_found_through_holes(edge: int, height: float, chance: int) -> None:
    generator = np.random.default_rng(chance)
    values = np.where(np.arange(300) >= edge, height, 0.0) + generator.normal(0.0, 0.5, 300)
    values[generator.random(300) < 0.2] = np.nan
    found = bend(TIMES, values, TIMES[0], TIMES[-1])
    assert found is not None
    assert found.at == pytest.approx(TIMES[edge], abs=6.0)


@pytest.mark.parametrize(
    "values", [np.full(300, 7.0), np.full(300, np.nan), np.r_[1.0, 2.0, np.full(298, np.nan)]]
)
def test_what_does_not_move_or_is_not_known_does_not_bend(values: np.ndarray) -> None:  # type: ignore[type-arg]
    assert bend(TIMES, values, TIMES[0], TIMES[-1]) is None
