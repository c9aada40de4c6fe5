from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.compiling import has_numba
from analysis.partition import breaks, cost, cut, cut_by_runs, totals

SMALL = st.lists(st.floats(-5, 5), min_size=4, max_size=10)


def _sum(values: np.ndarray, cuts: tuple[int, ...], penalty: float) -> float:
    """By its definition: residuals of a mean or of a line of least squares."""
    total = 0.0
    for begin, end in pairwise((0, *cuts, len(values))):
        part = values[begin:end]
        level = float(((part - part.mean()) ** 2).sum())
        if len(part) > 2:
            places = np.arange(len(part))
            line = np.polyval(np.polyfit(places, part, 1), places)
            level = min(level, float(((part - line) ** 2).sum()) + penalty)
        total += level + penalty
    return total


@settings(max_examples=60)
@given(values=SMALL, penalty=st.floats(0.1, 20), shortest=st.integers(1, 3))
def test_no_other_partition_costs_less(values: list[float], penalty: float, shortest: int) -> None:
    series = np.array(values)
    found = breaks(series, penalty, shortest)
    assert all(end - begin >= shortest for begin, end in pairwise((0, *found, len(series))) if found)
    every = [
        cuts
        for count in range(len(series))
        for cuts in combinations(range(1, len(series)), count)
        if all(end - begin >= shortest for begin, end in pairwise((0, *cuts, len(series))))
    ]
    least = min(_sum(series, cuts, penalty) for cuts in every)
    assert _sum(series, found, penalty) == pytest.approx(least, abs=1e-6)


@pytest.mark.skipif(not has_numba(), reason="no numba here, and so one way only")
@pytest.mark.parametrize("seed", range(12))
def test_the_fast_way_and_the_plain_one_give_the_same(seed: int) -> None:
    chance = np.random.default_rng(seed)
    noise = chance.normal(size=int(chance.integers(30, 400)))
    levels = np.repeat(chance.normal(size=40) * 3, 10)[: len(noise)]
    for series in (noise, noise + levels, np.cumsum(noise), np.round(levels), np.zeros(len(noise))):
        scaled = series / max(float(series.std()), 1.0)
        penalty = float(chance.uniform(0.5, 60))
        assert breaks(scaled, penalty, 5) == tuple(cut(scaled, penalty, 5))


def test_the_fast_way_as_it_stands_uncompiled_is_the_plain_one() -> None:
    series = np.repeat([0.0, 3.0, 1.0], 30) + np.sin(np.arange(90.0))
    assert cut_by_runs(series, 9.0, 5).tolist() == cut(series, 9.0, 5).tolist() == [30, 60]


def test_a_cost_is_that_of_the_line_or_the_level() -> None:
    line = np.arange(20.0)
    assert cost(totals(line), 0, 20, 3.0) == pytest.approx(3.0)
    assert cost(totals(np.array([1.0, 3.0])), 0, 2, 3.0) == pytest.approx(2.0)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        breaks(np.zeros(9), 0.0, 2)
    with pytest.raises(ValueError, match="not known"):
        breaks(np.array([1.0, np.nan] * 9), 1.0, 2)
    assert breaks(np.zeros(3), 1.0, 2) == ()
