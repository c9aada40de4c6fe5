from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from exporter.handover import Exact, Handover


def exact(at: float, total: float, source: str = "a") -> Exact:
    return Exact(at, (source,), total)


def fed(handover: Handover, *told: tuple[float | None, Exact | None]) -> list[float]:
    values = []
    for estimate, count in told:
        handover = handover.fed(estimate, count)
        values.append(handover.value)
    return values


def test_a_probe_goes_on_from_where_the_estimate_stood() -> None:
    start = Handover(7.0, 7.0)
    assert fed(start, (7.0, exact(1, 100)), (7.0, exact(2, 103)), (9.0, exact(3, 103))) == [7, 10, 10]


def test_what_the_estimate_says_meanwhile_adds_nothing_and_then_it_goes_on_from_there() -> None:
    start = Handover(0.0, 0.0)
    told = ((0.0, exact(1, 0)), (2.0, exact(2, 3)), (2.0, None), (4.0, None))
    assert fed(start, *told) == [0, 3, 3, 5]


def test_what_happened_since_the_probe_s_last_word_is_not_lost() -> None:
    silent = exact(1, 3)
    # the same message is shown until it is stale, while the estimate already rises
    assert fed(Handover(0.0, 0.0), (0.0, exact(0, 0)), (3.0, silent), (4.0, silent), (6.0, None)) == [
        0,
        3,
        3,
        6,
    ]


def test_a_probe_that_comes_back_sets_the_estimate_right_and_nothing_falls() -> None:
    start = Handover(0.0, 0.0)
    low = ((0.0, exact(1, 0)), (1.0, None), (1.0, exact(9, 5)))
    assert fed(start, *low) == [0, 1, 5]
    high = ((0.0, exact(1, 0)), (7.0, None), (7.0, exact(9, 5)), (7.0, exact(10, 8)))
    assert fed(start, *high) == [0, 7, 7, 8]


def test_another_sender_counts_from_where_it_stands() -> None:
    start = Handover(0.0, 0.0)
    assert fed(start, (0.0, exact(1, 5)), (0.0, exact(2, 9)), (0.0, exact(3, 50, "b")), (0.0, exact(4, 51, "b"))) == [
        0, 4, 4, 5,
    ]  # fmt: skip


def test_nothing_told_changes_nothing() -> None:
    assert fed(Handover(4.0, 4.0), (None, None), (5.0, None), (None, None), (6.0, None)) == [4, 5, 5, 6]


rises = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.booleans()), max_size=40)


@given(rises)
def test_it_never_falls_and_is_exact_while_the_probe_speaks(
    seconds: list[tuple[int, int, bool, bool]],
) -> None:
    handover, estimate, count = Handover(0.0, 0.0), 0.0, 0.0
    values = [0.0]
    spoke = False
    for at, (by_estimate, by_probe, speaks, reads) in enumerate(seconds):
        estimate, count = estimate + by_estimate, count + by_probe
        handover = handover.fed(estimate if reads else None, exact(at, count) if speaks else None)
        values.append(handover.value)
        if speaks and spoke:
            assert values[-1] - values[-2] <= by_probe
        spoke = speaks
    assert all(earlier <= later for earlier, later in itertools.pairwise(values))
