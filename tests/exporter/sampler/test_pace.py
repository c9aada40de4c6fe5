from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exporter.sampler.pace import CALM_SECONDS, CPU_SHARE, DRIVER_SHARE, MOST, PATIENCE_SECONDS, Pace


def told(pace: Pace, cpu: float, driver: float, seconds: int) -> int:
    for _ in range(seconds):
        pace.told(cpu, driver)
    return pace.factor


def test_reads_stretch_after_seconds_of_too_much_and_shrink_after_a_calm() -> None:
    for cpu, driver in ((CPU_SHARE * 1.1, 0.0), (0.0, DRIVER_SHARE * 1.1)):
        pace = Pace()
        assert told(pace, cpu, driver, PATIENCE_SECONDS - 1) == 1
        assert told(pace, cpu, driver, 1) == 2
        assert told(pace, cpu, driver, PATIENCE_SECONDS) == 4
        assert pace.stretched(0.034) == 0.034 * 4
        assert told(pace, 0.0, 0.0, CALM_SECONDS - 1) == 4
        assert told(pace, 0.0, 0.0, 1) == 2
        assert told(pace, 0.0, 0.0, CALM_SECONDS) == 1


def test_one_second_of_too_much_is_nothing() -> None:
    pace = Pace()
    for _ in range(100):
        told(pace, 1.0, 1.0, PATIENCE_SECONDS - 1)
        assert told(pace, 0.0, 0.0, 1) == 1


def test_it_stays_where_half_the_pace_costs_just_what_it_may() -> None:
    pace = Pace()
    told(pace, CPU_SHARE * 1.5, 0.0, PATIENCE_SECONDS)
    assert told(pace, CPU_SHARE * 0.75, 0.0, 1000) == 2


@given(st.lists(st.tuples(st.floats(0, 8), st.floats(0, 8)), max_size=400), st.floats(0.01, 1))
def test_a_fast_read_is_never_faster_than_wanted_nor_slower_than_each_second(
    loads: list[tuple[float, float]], wanted: float
) -> None:
    pace = Pace()
    for cpu, driver in loads:
        pace.told(cpu, driver)
        assert 1 <= pace.factor <= MOST
        assert wanted <= pace.stretched(wanted) <= 1
