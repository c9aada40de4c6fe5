import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.changepoint import Change, change_points, frame_changes
from analysis.frame import Frame, Key


def _noise(count: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=count)


def _shift(count: int = 600, at: int = 400, by: float = 8.0) -> np.ndarray:
    return 10.0 + _noise(count) + by * (np.arange(count) >= at)


def test_a_shift_is_found_where_it_is_with_its_levels() -> None:
    times = 1e9 + 15.0 * np.arange(600)
    (change,) = change_points(_shift(), times)
    assert change.place == 400
    assert change.time == times[400]
    assert (change.before, change.after) == (pytest.approx(10, abs=0.3), pytest.approx(18, abs=0.3))
    assert change.strength > 3
    assert not change.after_gap


@pytest.mark.parametrize("count", [20, 300, 1440, 20_000])
def test_noise_and_constants_have_none(count: int) -> None:
    assert change_points(_noise(count)) == ()
    assert change_points(np.full(count, 7.0)) == ()
    assert change_points(80.0 + 0.01 * _noise(count)) == ()


def test_spikes_are_none_and_a_short_burst_after_nothing_is_two() -> None:
    spiky = _noise(1000)
    spiky[[100, 500, 501, 900]] = 1e6
    assert change_points(spiky) == ()
    never = np.zeros(1440)
    never[700:720] = 3.0
    assert [change.place for change in change_points(never)] == [700, 720]


def test_a_climb_begins_where_it_does() -> None:
    climbing = 0.2 * _noise(500) + np.maximum(np.arange(500) - 300, 0) * 0.1
    (change,) = change_points(climbing)
    assert change.place == pytest.approx(300, abs=12)


def test_long_series_are_as_exact_as_short_ones() -> None:
    (change,) = change_points(_shift(100_003, 61_234))
    assert change.place == 61_234


def test_gaps_are_left_out_and_a_change_behind_one_says_so() -> None:
    values = _shift()
    values[380:400] = np.nan
    values[50:60] = np.inf
    (change,) = change_points(values)
    assert (change.place, change.after_gap) == (400, True)
    assert change_points(np.full(100, np.nan)) == ()
    assert change_points(np.arange(11.0)) == ()


@settings(max_examples=40)
@given(
    unit=st.sampled_from([1e-6, 0.5, 1024.0, 1e12]),
    seed=st.integers(0, 10),
    gap=st.integers(0, 80),
)
def test_neither_units_nor_the_end_of_the_world_change_places(unit: float, seed: int, gap: int) -> None:
    chance = np.random.default_rng(seed)
    values = chance.normal(10, 1, 200) + 6 * (np.arange(200) >= 120)
    values[100 - gap : 100] = np.nan
    plain, scaled = change_points(values), change_points(values * unit)
    assert [each.place for each in plain] == [each.place for each in scaled]
    for each in plain:
        assert isinstance(each, Change)
        assert not np.isnan(values[each.place])


def test_of_a_frame_only_what_changed_is_named() -> None:
    times = 1e9 + np.arange(600.0)
    calm, moved = Key("calm"), Key("moved")
    frame = Frame(times, 1.0, (calm, moved), np.column_stack([np.ones(600), _shift()]))
    found = frame_changes(frame)
    assert list(found) == [moved]
    assert found[moved][0].time == times[400]


def test_times_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="one of each"):
        change_points(np.zeros(9), np.zeros(8))
