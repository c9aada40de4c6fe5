"""When the page will be scraped next, by when it was."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from exporter.demand import MOST_KINDS, MOST_SCRAPERS, SLACK_SECONDS, Demand

intervals = st.sampled_from([1.0, 5.0, 10.0, 15.0, 30.0, 60.0])


@given(intervals, st.lists(st.floats(0, 0.99), min_size=1, max_size=MOST_SCRAPERS, unique=True))
def test_who_scrapes_at_fixed_intervals_is_expected(interval: float, offsets: list[float]) -> None:
    demand: Demand[str] = Demand()
    times = [interval * (turn + offset) for turn, offset in itertools.product(range(4), sorted(offsets))]
    for known, at in enumerate(times):
        if known > len(offsets):
            assert demand.expected(at - 0.5, at + 0.5) == ["page"]
        demand.note("page", at)


@given(st.floats(-SLACK_SECONDS, SLACK_SECONDS))
def test_a_scrape_may_be_a_bit_early_or_late(off: float) -> None:
    demand: Demand[str] = Demand()
    for at in (0.0, 15.0):
        demand.note("page", at)
    end = 30.0 + off * 0.99
    assert demand.expected(29.0, end) == ["page"]
    assert demand.expected(31.0 - 0.89 * SLACK_SECONDS, 32.0) == []


def test_nothing_is_made_between_two_scrapes_nor_for_who_has_stopped() -> None:
    demand: Demand[str] = Demand()
    for at in range(0, 100, 15):
        demand.note("page", float(at))
    seconds = [at for at in range(91, 1000) if demand.expected(at + 0.5, at + 1.5)]
    assert seconds == [104], "the scrape at 105"


def test_one_scrape_tells_of_no_other() -> None:
    demand: Demand[str] = Demand()
    demand.note("page", 5.0)
    assert demand.expected(0.0, 1000.0) == []


def test_each_kind_has_its_own_time_and_only_so_many_are_kept() -> None:
    demand: Demand[str] = Demand()
    for at in (0.0, 10.0):
        demand.note("text", at)
        demand.note("zipped", at + 3.0)
    assert demand.expected(19.5, 20.5) == ["text"]
    assert demand.expected(22.5, 23.5) == ["zipped"]
    for number in range(MOST_KINDS):
        demand.note(f"made up {number}", 14.0)
    assert demand.expected(0.0, 100.0) == [], "the oldest go first"
