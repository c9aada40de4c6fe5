from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from analysis.history.server_plan import (
    DAY,
    GOOD_SAMPLES,
    SHORTEST,
    Census,
    Piece,
    cut,
    day_of,
    days,
    halves,
    plan,
)

NAMES = ("a", "b", "c")
T0 = 20_000 * DAY
RANGES = st.tuples(st.integers(T0, T0 + 5 * DAY), st.integers(1, 9 * DAY)).map(
    lambda each: (each[0], sum(each))
)


def census(start: int, end: int, series: dict[str, int], samples: float = 5760.0) -> Census:
    return Census({day_of(until): series for _, until in days(start, end)}, samples)


def covered(pieces: list[Piece], name: str) -> list[tuple[int, int]]:
    return sorted((piece.start, piece.end) for piece in pieces if name in piece.names)


@given(RANGES, st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2000), min_size=1))
def test_each_name_is_read_once_through_the_whole_range(
    span: tuple[int, int], series: dict[str, int]
) -> None:
    pieces = plan(sorted(series), *span, census(*span, series))
    for name in series:
        stretches = covered(pieces, name)
        assert stretches[0][0] == span[0]
        assert stretches[-1][1] == span[1]
        assert all(before[1] == after[0] for before, after in itertools.pairwise(stretches))
    assert [piece.end for piece in pieces] == sorted((piece.end for piece in pieces), reverse=True)
    for piece in pieces:
        assert piece.expected <= GOOD_SAMPLES or not halves(piece)


@given(length=st.integers(1, 20 * DAY), start=st.integers(T0, T0 + 20 * DAY), names_first=st.booleans())
def test_halves_are_the_whole_however_often(*, length: int, start: int, names_first: bool) -> None:
    whole = [Piece(NAMES, start, start + length, 1.0)]
    for _ in range(4):
        whole = [part for piece in whole for part in halves(piece, names_first=names_first) or (piece,)]
    for name in NAMES:
        stretches = covered(whole, name)
        assert stretches[0][0] == start
        assert stretches[-1][1] == start + length
        assert all(before[1] == after[0] for before, after in itertools.pairwise(stretches))


def test_what_cant_be_halved_is_one_name_for_a_short_time() -> None:
    assert halves(Piece(("a",), T0, T0 + SHORTEST, 1.0)) == ()
    assert len(halves(Piece(("a", "b"), T0, T0 + SHORTEST, 1.0))) == 2


def test_pieces_of_two_ranges_are_the_same_but_at_their_ends() -> None:
    series = {"a": 400}
    month = (T0 + 12_345, T0 + 10 * DAY)
    later = (T0 + 3 * DAY + 777_000, T0 + 12 * DAY)
    one, other = (plan(["a"], *span, census(*span, series)) for span in (month, later))
    shared = {(piece.start, piece.end) for piece in one} & {(piece.start, piece.end) for piece in other}
    # a day of 400 series is five good answers: it is cut in eight
    assert len(shared) == 6 * 8 + 7


def test_a_sliver_before_midnight_goes_with_the_next_day() -> None:
    assert list(days(T0 - 1, T0 + 2 * DAY)) == [(T0 - 1, T0 + DAY), (T0 + DAY, T0 + 2 * DAY)]


def test_days_without_a_name_are_not_asked_for_and_uncounted_ones_are() -> None:
    counted = Census({T0 + DAY: {"a": 10}, T0 + 2 * DAY: {}}, 5760.0)
    pieces = plan(["a"], T0, T0 + 3 * DAY, counted)
    assert [(piece.start, piece.expected) for piece in pieces] == [(T0 + 2 * DAY, 57_600.0), (T0, 57_600.0)]


def test_nothing_counted_is_asked_for_all_the_same() -> None:
    assert [piece.expected for piece in plan(["a"], T0, T0 + DAY, Census({}, 5760.0))] == [GOOD_SAMPLES]


def test_many_series_are_read_name_by_name_and_in_short_times() -> None:
    span = (T0, T0 + DAY)
    pieces = plan(["a", "b"], *span, census(*span, {"a": 100, "b": 3000}))
    assert covered(pieces, "a") == [(T0, T0 + DAY // 2), (T0 + DAY // 2, T0 + DAY)]
    assert len(covered(pieces, "b")) == 64


def test_after_a_refusal_as_much_isnt_asked_for_again() -> None:
    parts = cut(Piece(("a",), T0, T0 + DAY, 1000.0), 300.0)
    assert [each.expected for each in parts] == [250.0] * 4
    assert [each.end for each in parts] == [T0 + DAY, T0 + 3 * DAY // 4, T0 + DAY // 2, T0 + DAY // 4]
