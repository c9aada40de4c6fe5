"""Rates that lag and err, and counters that wrap: together they are exact, or an interval is marked."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sampler.backend import ByteCounters, ByteRates
from exporter.sampler.pcie_totals import PcieTotals

WRAP = 1 << 32
LINE = 63e9
IDLE = 350_000


class Second(NamedTuple):
    """Bytes that moved in it, and the share of them that shows in the next one only."""

    moved: int
    late: float
    rate_fails: bool = False


seconds = st.builds(
    Second,
    # a counter that comes around to just where it was has stood still for all that anybody can see: a test of its own
    moved=st.one_of(
        st.just(IDLE), st.integers(IDLE, 3 * 10**9), st.integers(IDLE, 60 * 10**9), st.just(40 * 10**9)
    ).filter(lambda moved: moved % WRAP != 0),
    late=st.one_of(st.just(0.0), st.floats(0, 0.5)),
    rate_fails=st.just(value=False),
)


def drive(trace: list[Second], scale: float, totals: PcieTotals) -> list[tuple[float, int]]:
    """Total and truth after each second; three idle ones come last."""
    at, truth, late, shown = 1000.0, 0, 0, []
    totals.add(None, ByteCounters(at, 0, 0, 32), LINE)
    for second in [*trace, *[Second(IDLE, 0.0)] * 3]:
        truth += second.moved
        now_late = max(
            int(second.moved * second.late), second.moved + late - int(LINE)
        )  # a link carries no more
        rate = scale * (second.moved - now_late + late)
        late = now_late
        at += 1
        told = None if second.rate_fails else rate
        rates = ByteRates(at - 1, at, told, told, "gpm")
        totals.add(rates, ByteCounters(at, truth % WRAP, truth % WRAP, 32), LINE)
        shown.append((totals.out_bytes, truth))
    return shown


@given(trace=st.lists(seconds, max_size=30))
def test_rates_that_are_right_but_late_end_in_the_exact_total_and_never_exceed_it(
    trace: list[Second],
) -> None:
    totals = PcieTotals()
    shown = drive(trace, 1.0, totals)
    for total, truth in shown:
        assert total <= truth + 1
    assert totals.ambiguous == 0
    assert shown[-1][0] == pytest.approx(shown[-1][1], rel=0.0011, abs=1)


def test_a_rate_above_what_the_link_carries_is_not_believed_and_said() -> None:
    totals = PcieTotals()
    totals.add(None, ByteCounters(1000.0, 0, 0, 32), LINE)
    for at, moved in ((1001.0, 40 * 10**9), (1002.0, 110 * 10**9)):  # 70 GB in a second over a line of 63
        rate = moved - (0 if at == 1001.0 else 40 * 10**9)
        counters = ByteCounters(at, moved % WRAP, moved % WRAP, 32)
        totals.add(ByteRates(at - 1, at, float(rate), float(rate), "gpm"), counters, LINE)
    assert totals.ambiguous == 1
    assert totals.out_bytes <= 110 * 10**9


@given(trace=st.lists(seconds, max_size=30))
def test_stretches_whose_wraps_are_told_are_exact_to_the_byte(trace: list[Second]) -> None:
    quiet = [Second(second.moved % 10**9, second.late) for second in trace]
    totals = PcieTotals()
    total, truth = drive(quiet, 1.0, totals)[-1]
    assert total == truth
    assert totals.ambiguous == 0


@given(trace=st.lists(seconds, max_size=30), scale=st.floats(0.92, 1.08))
def test_rates_that_err_stay_within_their_error(trace: list[Second], scale: float) -> None:
    totals = PcieTotals()
    shown = drive(trace, scale, totals)
    last = 0.0
    for total, truth in shown:
        assert last <= total <= 1.08 * truth + 1
        last = total
    if not totals.ambiguous:
        assert shown[-1][0] == pytest.approx(shown[-1][1], rel=0.082)


@given(trace=st.lists(seconds, max_size=30), failing=st.sets(st.integers(0, 29)))
def test_what_no_source_tells_is_missing_and_marked(trace: list[Second], failing: set[int]) -> None:
    broken = [second._replace(late=0.0, rate_fails=place in failing) for place, second in enumerate(trace)]
    totals = PcieTotals()
    shown = drive(broken, 1.0, totals)
    lost = [second.moved for second in broken if second.rate_fails]
    assert totals.ambiguous == len(lost)
    assert shown[-1][0] == pytest.approx(shown[-1][1] - sum(lost), rel=0.0011, abs=1)


def test_a_zero_is_believed_of_an_idle_link_only() -> None:
    totals = PcieTotals()
    totals.add(None, ByteCounters(1.0, 7, 7, 32), LINE)
    totals.add(ByteRates(1.0, 2.0, 0.0, 0.0, "gpm"), ByteCounters(2.0, 7, 7, 32), LINE)
    assert (totals.ambiguous, totals.disagreements) == (0, 0)
    totals.add(ByteRates(2.0, 3.0, 0.0, 0.0, "gpm"), ByteCounters(3.0, 7, 8, 32), LINE)
    assert (totals.ambiguous, totals.disagreements, totals.rates_stuck) == (1, 1, 1)
    assert totals.out_bytes == 0


def test_counters_that_stand_still_while_rates_move_are_left_for_the_rates() -> None:
    totals = PcieTotals()
    totals.add(None, ByteCounters(1.0, 7, 7, 32), LINE)
    for at in (1.0, 2.0, 3.0, 4.0):
        totals.add(ByteRates(at, at + 1, 5e9, 1e9, "gpm"), ByteCounters(at + 1, 7, 7, 32), LINE)
    assert totals.counters_stuck == 4
    assert totals.disagreements >= 3
    assert totals.ambiguous >= 1
    assert totals.out_bytes == pytest.approx(20e9)


@given(st.integers(2, 20), st.integers(1, 13))
def test_counters_that_come_around_to_just_where_they_were_are_marked_and_never_too_much(
    count: int, wraps: int
) -> None:
    totals = PcieTotals()
    shown = drive([Second(wraps * WRAP, 0.0)] * count, 1.0, totals)
    assert totals.ambiguous >= 1
    assert all(total <= truth + 1 for total, truth in shown)


def test_rates_alone_add_up() -> None:
    totals = PcieTotals()
    for at in (1.0, 2.0, 3.0):
        totals.add(ByteRates(at, at + 1, 5e9, 1e9, "gpm"), None, LINE)
    assert (totals.out_bytes, totals.in_bytes, totals.ambiguous) == (10e9, 2e9, 0)
    # a read that failed leaves a gap
    totals.add(ByteRates(5.0, 6.0, 5e9, 1e9, "gpm"), None, LINE)
    assert (totals.out_bytes, totals.ambiguous) == (10e9, 1)


def test_a_rate_above_the_line_or_of_no_sure_time_is_none() -> None:
    for rates in (
        ByteRates(1.0, 2.0, 1.2 * LINE, 0.0, "gpm"),
        ByteRates(1.0, 2.0, 5e9, 5e9, "gpm", slack_seconds=0.06),
        ByteRates(2.0, 2.0, 5e9, 5e9, "gpm"),
        ByteRates(0.5, 2.0, 5e9, 5e9, "gpm"),
    ):
        totals = PcieTotals()
        totals.add(None, ByteCounters(1.0, 0, 0, 32), LINE)
        totals.add(rates, ByteCounters(2.0, 5 * 10**8, 5 * 10**8, 32), LINE)
        assert totals.ambiguous == 1


def test_what_comes_after_a_loss_does_not_count_what_was_lost() -> None:
    totals = PcieTotals()
    totals.lose()
    assert totals.ambiguous == 0
    totals.add(None, ByteCounters(1.0, 100, 0, 32), 1e9)
    totals.add(None, ByteCounters(2.0, 600, 0, 32), 1e9)
    totals.lose()
    totals.add(None, ByteCounters(3.0, 5, 0, 32), 1e9)
    totals.add(None, ByteCounters(4.0, 25, 0, 32), 1e9)
    assert (totals.out_bytes, totals.ambiguous) == (520, 1)


def test_a_counter_that_turns_out_to_be_wider_begins_anew() -> None:
    totals = PcieTotals()
    totals.add(None, ByteCounters(1.0, WRAP - 5, 0, 32), 1e9)
    totals.add(None, ByteCounters(2.0, WRAP + 5, 0, 64), 1e9)
    totals.add(None, ByteCounters(3.0, WRAP + 9, 0, 64), 1e9)
    assert (totals.out_bytes, totals.ambiguous) == (4, 1)
