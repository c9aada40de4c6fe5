from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import analysis.rolling_median
import analysis.scores
from analysis.polynomial import distance
from analysis.scores import period, scores


def wave(instants: int = 3000, seed: int = 1) -> np.ndarray:
    """A period of 50 and noise."""
    noise = np.random.default_rng(seed).normal(0.0, 0.1, instants)
    return np.sin(np.arange(instants) * 2 * np.pi / 50) + noise


@pytest.mark.parametrize("length", [1, 3, 40])
@pytest.mark.parametrize("at", [700, 2300])
def test_what_was_put_in_stands_out(length: int, at: int) -> None:
    values = wave()
    values[at : at + length] += 4.0
    found = scores(values)
    assert at - 50 <= int(np.argmax(found)) <= at + length + 50
    assert found[at : at + length].min() > np.quantile(found, 0.95)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e9]), st.floats(-1e3, 1e3))
def test_unit_and_zero_change_nothing(seed: int, unit: float, zero: float) -> None:
    values = wave(600, seed)
    assert scores((values + zero) * unit) == pytest.approx(scores(values), abs=0.05)


def test_gaps_have_no_score_and_change_little_beside_them() -> None:
    values = wave()
    values[1500] += 5.0
    holed = values.copy()
    holed[400:460] = np.nan
    found = scores(holed)
    assert np.isnan(found[400:460]).all()
    assert int(np.nanargmax(found)) == int(np.argmax(scores(values)))
    assert np.isnan(scores(np.full(9, np.nan))).all()


@pytest.mark.parametrize("instants", [1, 5, 49, 400])
def test_a_constant_and_a_short_series_are_scored_too(instants: int) -> None:
    assert (scores(np.full(instants, 3.0)) == 0.0).all()
    assert np.isfinite(scores(wave(instants))).all()


def test_without_numba_scores_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    values = wave()
    values[100:130] = np.nan
    fast = scores(values)
    monkeypatch.setattr(analysis.scores, "has_numba", lambda: False)
    monkeypatch.setattr(analysis.rolling_median, "has_numba", lambda: False)
    assert scores(values) == pytest.approx(fast, rel=1e-9, abs=1e-9, nan_ok=True)


def test_the_period_is_that_of_the_series() -> None:
    assert period(wave()) in {50, 100, 150, 200, 250, 300}
    assert period(np.arange(1000.0)) == 125


@pytest.mark.parametrize("instants", [400, 407])
def test_a_polynomial_is_its_own_curve(instants: int) -> None:
    at = np.linspace(-1, 1, instants)
    curve = 3 + at - 2 * at**2 + at**3 + 5 * at**4
    assert distance(curve, 20) == pytest.approx(np.zeros(instants), abs=1e-9)


def test_a_block_has_no_say_in_its_own_curve() -> None:
    values = np.zeros(400)
    values[200:220] = 1.0
    assert distance(values, 20)[200:220] == pytest.approx(np.ones(20), abs=1e-9)
