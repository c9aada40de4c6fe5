from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analysis.robust import quantile_of_columns, scale

VALUES = arrays(np.float64, st.integers(3, 80), elements=st.floats(-1e6, 1e6))


def test_a_normal_distribution_has_its_own_deviation() -> None:
    values = np.random.default_rng(1).normal(7.0, 2.0, 20_000)
    found = scale(values)
    assert found is not None
    assert (found.middle, found.spread) == (pytest.approx(7.0, abs=0.1), pytest.approx(2.0, rel=0.03))


@given(VALUES, st.sampled_from([1e-9, 0.5, 1024.0, 1e9]))
def test_a_unit_changes_nothing(values: np.ndarray, unit: float) -> None:
    plain, other = scale(values), scale(values * unit)
    assert plain is not None
    assert other is not None
    if plain.spread > 1e-9:
        assert other.z(values * unit) == pytest.approx(plain.z(values), rel=1e-6, abs=1e-6)


def test_the_next_digit_of_a_constant_is_no_event_and_the_first_of_what_never_was_is() -> None:
    constant, never = scale(np.full(50, 80.0)), scale(np.zeros(50))
    assert constant is not None
    assert never is not None
    assert constant.z(np.array([80.1]))[0] < 1
    assert never.z(np.array([0.0, 1.0, -1.0, np.nan])).tolist()[:3] == [0.0, np.inf, -np.inf]
    assert np.isnan(never.z(np.array([np.nan]))[0])


def test_what_is_not_known_does_not_count() -> None:
    assert scale(np.array([np.nan, np.nan])) is None
    assert scale(np.array([1.0, np.nan, 3.0])) == scale(np.array([1.0, 3.0]))
    assert scale(np.zeros(4), least=0.25) is not None


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 20)),
        elements=st.floats(-1e6, 1e6) | st.just(np.nan),
    ),
    st.sampled_from([0.0, 0.5, 0.9, 1.0]),
)
def test_a_quantile_of_columns_is_numpys(values: np.ndarray, share: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a column that nothing is known of
        expected = np.nanquantile(values, share, axis=0)
    assert quantile_of_columns(values, share) == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)
