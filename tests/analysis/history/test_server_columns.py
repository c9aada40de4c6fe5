from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.frame import Key
from analysis.history.samples import Samples
from analysis.history.server_columns import Columns, common, interval_of, mixed

T0 = 1_796_083_200.0
STEP = 15.0
KEY = Key("a")


def placed(times: np.ndarray, cuts: list[float], order: list[int], count: int) -> np.ndarray:  # type: ignore[type-arg]
    """Values 0, 1, ... at these times, in pieces that are put in some order; the column from T0 on."""
    columns = Columns(T0, T0 + count * STEP, STEP)
    values = np.arange(len(times), dtype=np.float64)
    bounds = [T0 - STEP, *cuts, T0 + count * STEP]
    pieces = list(itertools.pairwise(bounds))
    for place in order:
        low, high = pieces[place]
        inside = (times > low) & (times <= high)
        columns.put(Samples(KEY, times[inside], values[inside]), low, high)
    frame = columns.frame()
    assert frame is not None
    column = np.full(count, np.nan)
    first = round((frame.start - T0) / STEP)
    column[first : first + len(frame)] = frame.column(KEY)
    return column


@given(
    st.floats(0.0, STEP - 0.2),
    st.lists(st.floats(0.0, 0.1), min_size=40, max_size=40),
    st.lists(st.integers(1, 38 * 15), min_size=2, max_size=2, unique=True).map(sorted),
    st.permutations(range(3)),
)
def test_each_scrape_has_a_step_of_its_own_whatever_its_phase_and_pieces(
    phase: float, late: list[float], cuts: list[int], order: list[int]
) -> None:
    times = T0 + STEP * np.arange(40) + phase + np.array(late)
    column = placed(times, [T0 + cut + 0.5 for cut in cuts], order, 42)
    there = column[~np.isnan(column)]
    assert there.tolist() == list(range(40))
    assert np.isnan(column).sum() == 2


def test_a_scrape_that_is_due_at_the_instant_stands_there_though_late() -> None:
    times = T0 + STEP * np.arange(5) + np.array([0.0, 0.002, 0.0, 0.004, 0.001])
    assert placed(times, [], [0], 5).tolist() == [0, 1, 2, 3, 4]


def test_a_step_that_two_pieces_share_holds_its_last_sample_whichever_comes_first() -> None:
    times = T0 + np.array([0.0, 8.0, 13.0, 22.0, 30.0])
    for order in ([0, 1], [1, 0]):
        assert placed(times, [T0 + 10.0], order, 3).tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    ("times", "interval"),
    [([1.0], None), ([0, 15.002, 29.998, 45], 15.0), ([0, 0.5, 1.0, 1.5], 0.5), ([0, 60, 120, 600], 60.0)],
)
def test_the_interval_is_what_mostly_lies_between(times: list[float], interval: float | None) -> None:
    assert interval_of(np.array(times)) == interval


def test_the_common_step_is_that_of_most_series_and_others_are_told() -> None:
    intervals = Counter({15.0: 6, 60.0: 3, 30.0: 1})
    assert common(intervals) == 15.0
    assert mixed(intervals, 15.0).startswith(
        "steps are mixed: 40% of the series come every 60 s, 30 s, not every 15 s"
    )
    assert mixed(Counter({15.0: 6, 15.2: 2}), 15.0) == ""
    assert common(Counter()) is None


@given(st.permutations(range(7)), st.integers(0, 5), st.integers(6, 12))
def test_columns_come_in_the_order_of_their_keys_and_from_the_first_sample_to_the_last(
    order: list[int], low: int, high: int
) -> None:
    columns = Columns(T0, T0 + 12 * STEP, STEP)
    instants = T0 + STEP * np.arange(low, high)
    for place in order:
        # one has no value at all, another is there for an instant only
        values = np.full(high - low, np.nan) if place == 3 else np.arange(low, high) + 100.0 * place
        last = 1 if place == 5 else high - low
        samples = Samples(Key(f"n{place}"), instants[:last], values[:last])
        columns.put(samples, T0 - STEP, T0 + 12 * STEP)
    frame = columns.frame()
    assert frame is not None
    assert [key.name for key in frame.keys] == ["n0", "n1", "n2", "n4", "n5", "n6"]
    assert frame.times.tolist() == instants.tolist()
    assert frame.column(Key("n6")).tolist() == [600.0 + place for place in range(low, high)]
    assert np.isnan(frame.column(Key("n5"))[1:]).all()
    assert frame.values.flags.f_contiguous


def test_no_sample_is_no_frame() -> None:
    assert Columns(T0, T0 + 60, STEP).frame() is None
