from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drill.serving.content import Segment
from drill.workload.arrivals import Arrival, Stream, Turn
from drill.workload.contents import content_id


def stream(*times: float, content: int = 1) -> Stream:
    return Stream(lambda: [Arrival(at, (Segment(content, 8),), 4) for at in times])


def times(arrivals: Stream) -> list[float]:
    return [each.seconds for each in arrivals]


TIMES = st.lists(st.floats(0, 100), max_size=20).map(sorted)


@given(TIMES, TIMES)
def test_streams_beside_each_other_keep_the_order_of_time(one: list[float], other: list[float]) -> None:
    both = stream(*one).beside(stream(*other))
    assert times(both) == sorted(one + other) == times(both)


@given(TIMES, st.floats(-50, 50))
def test_a_shifted_stream_loses_only_what_would_come_before_0(row: list[float], by: float) -> None:
    assert times(stream(*row).shifted(by)) == [at + by for at in row if at + by >= 0]


def test_a_part_of_a_stream_has_its_beginning_and_not_its_end() -> None:
    assert times(stream(0.0, 1.0, 2.0, 3.0).between(1.0, 3.0)) == [1.0, 2.0]


def test_a_warped_stream_runs_by_another_clock() -> None:
    assert times(stream(1.0, 2.0, 4.0).warped(math.sqrt)) == [1.0, math.sqrt(2.0), 2.0]


@given(st.integers(0, 5), TIMES)
def test_a_whole_factor_repeats_each_request(factor: int, row: list[float]) -> None:
    assert times(stream(*row).scaled(factor)) == [at for at in row for _ in range(factor)]


def test_a_factor_with_a_fraction_keeps_about_that_share_and_always_the_same() -> None:
    many = stream(*(float(at) for at in range(4000))).scaled(0.3, seed=2)
    assert len(times(many)) == pytest.approx(1200, rel=0.1)
    assert times(many) == times(many)


def test_copies_share_among_themselves_but_not_with_the_stream() -> None:
    turns = (Turn(1.0, (Segment(2, 8),), 4),)
    one = Stream(lambda: [Arrival(at, (Segment(1, 8),), 4, answer=3, turns=turns) for at in (0.0, 1.0)])
    first, copy, second, other = one.scaled(2)
    assert first.content == second.content == (Segment(1, 8),)
    assert copy.content == other.content != first.content
    assert copy.answer == other.answer != first.answer
    assert copy.turns[0].content == other.turns[0].content != first.turns[0].content
    assert (len(copy.turns), copy.turns[0].content[0].tokens) == (1, 8)
    assert copy.turns[:1][0] == copy.turns[0]


@pytest.mark.parametrize("factor", [-1.0, math.inf, math.nan])
def test_a_stream_is_not_scaled_by_what_is_no_factor(factor: float) -> None:
    with pytest.raises(ValueError, match="scaled"):
        stream(0.0).scaled(factor)


def test_contents_are_ids_of_their_own_below_those_of_engines() -> None:
    ids = {content_id(one, two) for one in range(100) for two in range(100)} | {
        content_id(n) for n in range(100)
    }
    assert len(ids) == 10_100
    assert all(0 <= each < 1 << 62 for each in ids)
