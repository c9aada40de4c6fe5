from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exporter.sampler.ticks import next_tick

# Sixty-fourths are exact in floats, so that nothing has to be said of rounding.
moments = st.integers(0, 10**6).map(lambda number: number / 64)
periods = st.integers(1, 10**4).map(lambda number: number / 64)


@given(moments, periods, moments)
def test_the_next_tick_is_the_first_of_the_grid_that_is_not_past(
    due: float, seconds: float, now: float
) -> None:
    tick = next_tick(due, seconds, now)
    assert tick > now
    assert (tick - due) % seconds == 0
    assert tick == due or tick - seconds <= now, "none is left out that could still be kept"
