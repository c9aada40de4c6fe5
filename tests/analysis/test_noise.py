from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.noise import LEAST_FACTOR, MOST_FACTOR, SPREADS_OUT, Noise, Varies

DURATION = Noise(Varies.BY_FACTOR, 0.02)
times = st.floats(0.0, 1e6)


@given(times, times)
def test_a_scale_keeps_the_order_and_is_told_in_the_unit_again(one: float, other: float) -> None:
    for noise in (DURATION, Noise(Varies.EVENLY, 1.0), Noise(Varies.BY_ROOT, 4.0, one=1.0)):
        first, second = noise.evened(np.array([one, other])).tolist()
        assert one >= other or first <= second
        assert noise.told(first) == pytest.approx(one, rel=1e-9, abs=1e-9)


@given(times, st.floats(0.0, 50.0), st.floats(1.0, 4.0))
def test_a_duration_is_out_by_the_least_change_or_factor_at_least_and_by_the_largest_at_most(
    usual: float, ranged: float, wider: float
) -> None:
    high = float(DURATION.evened(np.array([usual]))[0])
    out = DURATION.told(high + SPREADS_OUT * DURATION.spread(ranged, 0.0, high, wider))
    least = DURATION.least_change
    assert out - usual >= 0.999 * max(least, (LEAST_FACTOR - 1) * usual)
    assert out <= MOST_FACTOR * (usual + least)


@given(st.floats(1.0, 1e6))
def test_a_count_is_out_no_sooner_than_chance_has_it(usual: float) -> None:
    noise = Noise(Varies.BY_ROOT, 4.0, one=1.0)
    assert noise.spread(0.0, usual, usual, 1.0) >= math.sqrt(usual)


def test_many_at_once_and_far_longer_are_no_single_event_and_tokens_never_tell() -> None:
    requests = Noise(Varies.BY_ROOT, 4 / 30, one=1 / 30, event_seconds=30.0)
    assert not requests.is_far(0.0, 3 / 30)
    assert requests.is_far(0.0, 300 / 30)
    tokens = Noise(Varies.BY_ROOT, 4 / 30, event_seconds=30.0)
    assert not tokens.is_far(0.0, 1e6)
    usual, longer, far = DURATION.evened(np.array([1.0, 3.0, 30.0])).tolist()
    assert not DURATION.is_far(usual, longer)
    assert DURATION.is_far(usual, far)
