"""Counters that wrap: what is counted is exact, and what can't be told is marked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.gpu_sample import PcieLink
from exporter.pcie import link_bytes_per_second
from exporter.sampler.backend import ByteCounters
from exporter.sampler.pcie_counting import FASTEST_LINK, moved, poll_interval, seconds_between
from exporter.sampler.pcie_totals import PcieTotals

WRAP = 1 << 32
GEN5_X16 = 32e9 / 8 * 128 / 130 * 16

links = st.sampled_from([(generation, width) for generation in range(1, 7) for width in (1, 4, 8, 16)])
shares = st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1))
intervals = st.lists(st.tuples(st.floats(0.01, 1.5), shares, shares), max_size=40)
starts = st.integers(0, WRAP - 1)


def line_of(link: tuple[int, int]) -> float:
    line = link_bytes_per_second(*link)
    assert line is not None
    return line


@given(link=links, polled=intervals, out_start=starts, in_start=starts)
def test_each_interval_is_exact_or_marked(
    link: tuple[int, int], polled: list[tuple[float, float, float]], out_start: int, in_start: int
) -> None:
    line, at, truth = line_of(link), 1000.0, [out_start, in_start]
    totals, counted, doubtful = PcieTotals(), [0, 0], 0
    totals.add(None, ByteCounters(at, out_start, in_start, 32), line)
    for seconds, *loads in polled:
        before, at = at, at + seconds
        bytes_moved = [int(line * (at - before) * load) for load in loads]
        truth = [total + each for total, each in zip(truth, bytes_moved, strict=True)]
        totals.add(None, ByteCounters(at, truth[0] % WRAP, truth[1] % WRAP, 32), line)
        if line * (at - before) < WRAP:
            counted = [total + each for total, each in zip(counted, bytes_moved, strict=True)]
        else:
            doubtful += 1
    assert [totals.out_bytes, totals.in_bytes] == counted
    assert totals.ambiguous == doubtful
    assert totals.disagreements == 0


@given(link=links, polled=st.lists(st.tuples(st.floats(0.01, 1.5), shares, st.booleans()), max_size=40))
def test_a_counter_that_begins_anew_never_counts_more_than_the_link_carries(
    link: tuple[int, int], polled: list[tuple[float, float, bool]]
) -> None:
    line, at, truth = line_of(link), 0.0, 0
    totals = PcieTotals()
    totals.add(None, ByteCounters(at, 0, 0, 32), line)
    most, last = 0.0, 0.0
    for seconds, load, is_reset in polled:
        truth = int(line * seconds * load) + (0 if is_reset else truth)
        at += seconds
        totals.add(None, ByteCounters(at, truth % WRAP, 0, 32), line)
        most += 1.1 * line * seconds + 1
        assert last <= totals.out_bytes <= most
        last = totals.out_bytes


def test_a_fall_that_no_wrap_explains_is_a_beginning() -> None:
    assert moved(4_000_000_000, 1_000, 32, 0.01, GEN5_X16) == 294_968_296
    assert moved(1_000_000_000, 1_000, 32, 0.01, GEN5_X16) is None
    assert moved(WRAP - 1, 0, 32, 0.01, GEN5_X16) == 1


def test_the_rule_holds_up_to_a_whole_wrap() -> None:
    wrap_seconds = WRAP / GEN5_X16
    assert wrap_seconds == pytest.approx(0.068, abs=0.0005)
    assert moved(5, 4, 32, wrap_seconds * 0.999, GEN5_X16) == WRAP - 1
    assert moved(5, 5, 32, wrap_seconds, GEN5_X16) is None
    assert moved(5, 4, 64, wrap_seconds, GEN5_X16) is None
    assert moved(5, 6, 64, 100, GEN5_X16) == 1
    assert moved(5, 6, 32, -0.001, GEN5_X16) is None


@pytest.mark.parametrize(
    ("link", "seconds"),
    [
        ((5, 16), 0.05),
        ((5, 8), 0.0682),
        ((4, 16), 0.0682),
        ((3, 16), 0.1363),
        ((4, 8), 0.1363),
        ((3, 4), 0.5453),
        ((1, 4), None),
        ((6, 16), None),
    ],
)
def test_how_often_to_read_follows_from_the_link_alone(link: tuple[int, int], seconds: float | None) -> None:
    interval = poll_interval(line_of(link))
    assert interval == (None if seconds is None else pytest.approx(seconds, abs=1e-4))
    assert interval is None or moved(0, 1, 32, interval, line_of(link)) == 1


def test_a_link_that_is_not_told_is_the_fastest_there_is() -> None:
    assert PcieLink(6, 16).max_bytes_per_second == FASTEST_LINK
    assert poll_interval(FASTEST_LINK) is None


def test_the_longest_time_that_can_lie_between_two_readings_counts() -> None:
    old = ByteCounters(10.5, 0, 0, 32, since=10.0, stamp=700.0)
    assert seconds_between(old, ByteCounters(11.25, 0, 0, 32, since=11.0, stamp=700.9)) == 1.25
    # the library kept a value for a while
    assert seconds_between(old, ByteCounters(11.25, 0, 0, 32, since=11.0, stamp=702.0)) == 2.0
    # the clock of the stamps was set back
    assert seconds_between(old, ByteCounters(11.25, 0, 0, 32, since=11.0, stamp=3.0)) == 1.25
    assert seconds_between(old, ByteCounters(11.25, 0, 0, 32)) == 1.25
