from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.frame import Key
from analysis.history.history import HistoryError
from analysis.history.samples import Gathered

AT = 1_790_000_000.0
A, B = Key("a"), Key("b")


def gathered(**series: list[tuple[float, float]]) -> Gathered:
    found = Gathered("made up")
    for name, samples in series.items():
        times, values = np.array(samples, dtype=np.float64).reshape(-1, 2).T
        found.add_series(Key(name), AT + times, values)
    return found


@given(st.permutations(range(24)), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_samples_in_any_order_and_any_parts_make_the_same_frame(order: list[int], parts: int) -> None:
    mixed = Gathered("made up")
    for part in np.array_split(np.array(order), parts):
        places = np.array([mixed.place((A, B)[each % 2]) for each in part], np.int32)
        mixed.add(places, AT + part // 2 * 15.0, part.astype(np.float64))
    frame = mixed.framed().frame
    assert frame.step_seconds == 15.0
    assert frame.column(A).tolist() == [each * 2.0 for each in range(12)]
    assert frame.column(B).tolist() == [each * 2.0 + 1 for each in range(12)]


def test_out_of_order_and_twice_are_put_right_and_said() -> None:
    history = gathered(a=[(0, 1), (15, 2), (45, 4), (30, 3), (45, 5), (60, 6)]).framed()
    assert history.frame.column(A).tolist() == [1, 2, 3, 5, 6]
    assert len(history.notes) == 2
    assert history.notes[0].startswith("1 samples came after a later one of their series")
    assert history.notes[1].startswith("1 samples are of the same time as another")


def test_a_clock_that_is_put_back_loses_nothing_that_is_told_once() -> None:
    history = gathered(a=[(0, 1), (15, 2), (30, 3), (7, 9), (22, 9), (37, 9), (52, 9)]).framed(
        step_seconds=15
    )
    assert np.isfinite(history.frame.column(A)).all()
    assert "a clock that was put back" in " ".join(history.notes)


def test_the_step_is_that_of_most_and_others_are_said_to_be_resampled() -> None:
    history = gathered(
        a=[(15.0 * place + 0.004 * (place % 3), place) for place in range(40)],
        b=[(60.0 * place, place) for place in range(10)],
        c=[(5.0 * place, place) for place in range(10)],
    ).framed()
    assert history.frame.step_seconds == 15.0
    slow = history.frame.column(B)
    # b of a minute stands where it was told, and nowhere else
    assert slow[::4].tolist()[:10] == list(range(10))
    assert np.isnan(slow).sum() == len(slow) - 10
    assert len(history.notes) == 2
    assert history.notes[0].startswith("1 of 3 series come every 60 s")
    assert history.notes[1].startswith("1 of 3 series come every 5 s")
    assert gathered(a=[(5.0 * place, place) for place in range(9)]).framed(step_seconds=20).notes == (
        "resampled from 5 s to 20 s: the last sample of each step",
    )


def test_a_gap_stays_a_gap() -> None:
    frame = gathered(a=[(0, 1), (15, 2), (30, 3), (90, 4), (105, 5)]).framed().frame
    assert np.isnan(frame.column(A)).tolist() == [False] * 3 + [True] * 3 + [False] * 2


def test_a_range_holds_what_is_in_it_and_one_without_says_what_is_held() -> None:
    frame = gathered(a=[(15.0 * place, place) for place in range(20)]).framed(AT + 30, AT + 90).frame
    assert frame.column(A).tolist() == [2, 3, 4, 5]
    with pytest.raises(HistoryError, match="holds nothing in that range; it holds 2026-09-21T14:13:20Z to"):
        gathered(a=[(0, 1), (15, 2)]).framed(AT + 1000)
    with pytest.raises(HistoryError, match="holds no samples"):
        Gathered("made up").framed()


def test_more_than_fits_into_memory_is_a_named_limit() -> None:
    found = gathered(a=[(0, 1), (1, 1), (2, 1), (5e9, 1)])
    with pytest.raises(HistoryError, match=r"5,000,000,001 instants of 1 series .*longer --step"):
        found.framed()
    with pytest.raises(HistoryError, match="no whole 3600 s lie in that range"):
        gathered(a=[(0, 1), (15, 2)]).framed(AT + 1, AT + 20, 3600.0)


def test_times_that_none_can_have_are_left_out_and_said() -> None:
    found = gathered(a=[(0, 1), (1, 2), (1e17, 3), (2, 4)])
    found.add_series(Key("a"), np.array([-5.0, np.nan, AT + 3]), np.array([5.0, 6.0, 7.0]))
    history = found.framed()
    assert history.frame.column(A).tolist() == [1, 2, 4, 7]
    assert history.notes == ("3 samples bear times before 1970 or beyond the year 5000 and were left out",)
