from __future__ import annotations

import itertools
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sample import Histogram, RankSample
from exporter.window import (
    COARSE_STEP_SECONDS,
    FINE_SECONDS,
    HORIZON_SECONDS,
    LONGEST_GAP_SECONDS,
    MERGE_BELOW_SECONDS,
    Total,
    Window,
)
from tests.support.derive import histogram, rank, window


def generated(sample: RankSample) -> float | None:
    return sample.generation_tokens_total


def usage(sample: RankSample) -> float | None:
    return sample.kv_usage_ratio


def preempted(sample: RankSample) -> float | None:
    return sample.preemptions_total


def counted(*pairs: tuple[float, float | None]) -> Window[RankSample]:
    return window(rank(at, generation_tokens_total=value) for at, value in pairs)


def test_delta_is_the_rise_and_the_time_it_took() -> None:
    delta = counted((0, 5), (1, 7), (2, 7), (3, 20)).delta(generated, 3)
    assert delta == (15, 3)
    assert delta is not None
    assert delta.per_second == 5


def test_delta_looks_at_the_trailing_time_only() -> None:
    assert counted((0, 0), (1, 100), (2, 101), (3, 103)).delta(generated, 2) == (3, 2)


def test_a_window_shorter_than_its_time_tells_nothing() -> None:
    filled = counted((0, 0), (1, 10), (2, 20))
    assert filled.delta(generated, 3) is None
    assert filled.delta(generated, 2) == (20, 2)


def test_scrapes_are_not_exactly_a_second_apart() -> None:
    assert counted((0.04, 0), (1.0, 10), (2.02, 20), (3.0, 30)).delta(generated, 3) == (
        30,
        pytest.approx(2.96),
    )


def test_the_first_rise_after_a_restart_is_dropped_with_its_time() -> None:
    # 100 -> 3 is a restart: what came between is unknown, in tokens and in seconds
    assert counted((0, 90), (1, 100), (2, 3), (3, 8)).delta(generated, 3) == (15, 2)


def test_a_restart_is_told_by_the_start_time_even_where_counters_rose() -> None:
    samples = [
        rank(0, generation_tokens_total=10.0, started_at=1000.0),
        rank(1, generation_tokens_total=12.0, started_at=1000.0),
        rank(2, generation_tokens_total=40.0, started_at=2000.0),
        rank(3, generation_tokens_total=41.0, started_at=2000.0),
    ]
    filled = window(samples)
    assert filled.delta(generated, 3) == (3, 2)
    assert [window(samples[:count]).restarted() for count in (1, 2, 3, 4)] == [False, False, True, False]


def test_a_replica_with_an_earlier_start_is_another_process() -> None:
    # one URL in front of two replicas: neither a jump up nor one down is a rise
    samples = [
        rank(float(at), generation_tokens_total=tokens, started_at=started)
        for at, (tokens, started) in enumerate([(1e6, 900.0), (10.0, 100.0)] * 10)
    ]
    filled = window(samples)
    assert filled.delta(generated, 10) is None
    assert filled.peak_rate(generated, 60) is None


def test_a_restart_is_seen_though_the_counter_was_absent_meanwhile() -> None:
    filled = counted((0, 1000), (1, 1100), (2, None), (3, 5), (4, 7))
    assert filled.restarts == (3,)


def test_another_counter_that_falls_alone_drops_only_its_own_rise() -> None:
    filled = window(
        rank(at, generation_tokens_total=10.0 * at, preemptions_total=count)
        for at, count in ((0, 5.0), (1, 6.0), (2, 0.0), (3, 2.0))
    )
    assert filled.delta(preempted, 3) == (3, 2)
    assert filled.delta(generated, 3) == (30, 3)


def test_a_value_that_was_absent_for_a_while_is_no_reset() -> None:
    assert counted((0, 5), (1, None), (2, None), (3, 11)).delta(generated, 3) == (6, 3)


def test_less_than_half_of_the_time_told_is_not_told() -> None:
    assert counted((0, None), (1, None), (2, None), (3, 5), (4, 6)).delta(generated, 4) is None


def test_samples_across_a_long_silence_do_not_belong_together() -> None:
    silence = LONGEST_GAP_SECONDS + 20
    assert counted((0, 0), (1, 10), (1 + silence, 500)).delta(generated, 10) is None


def test_a_stalled_scrape_within_the_staleness_limit_still_counts() -> None:
    assert counted((0, 0), (1, 10), (14, 100), (15, 110)).delta(generated, 10) == (100, 14)


def test_bunched_scrapes_are_merged_into_one_interval() -> None:
    filled = counted((0, 0), (1, 10), (6.0, 60), (6.1, 61), (6.2, 62), (7.2, 72))
    assert [(a.at, b.at) for a, b in filled.intervals(7)] == [(0, 1), (1, 6.0), (6.0, 7.2)]
    assert len(filled.samples) == 6


def test_what_was_seen_in_a_bunch_is_not_forgotten() -> None:
    ats = ((0, 0.5), (1, 0.5), (1.3, 1.0), (2.3, 0.5))
    filled = window(rank(at, kv_usage_ratio=value) for at, value in ats)
    assert filled.peak(usage, 60) == 1.0


def test_the_newest_sample_is_there_even_when_its_interval_is_short() -> None:
    assert counted((0, 0), (1, 10), (1.2, 12)).newest.at == 1.2


def test_a_restart_within_a_bunch_splits_it() -> None:
    filled = counted((0, 50), (1, 60), (1.2, 2), (1.4, 3), (2.4, 9))
    assert filled.delta(generated, 2) == (17, pytest.approx(2.2))


def test_an_older_sample_is_refused() -> None:
    filled = counted((0, 0), (5, 5))
    assert filled.appended(rank(4, generation_tokens_total=4.0)) is filled


def test_memory_is_bounded() -> None:
    filled = counted(*((float(at), float(at)) for at in range(2000)))
    ats = [sample.at for sample in filled.samples]
    assert ats[0] >= 1999 - HORIZON_SECONDS
    assert len(ats) <= FINE_SECONDS + 1 + (HORIZON_SECONDS - FINE_SECONDS) / COARSE_STEP_SECONDS + 1
    assert ats[-70:] == [float(at) for at in range(1930, 2000)]
    assert filled.delta(generated, 300) == (pytest.approx(300, abs=5), pytest.approx(300, abs=5))


def test_peak_is_the_largest_of_the_trailing_time() -> None:
    filled = window(rank(float(at), kv_usage_ratio=value) for at, value in enumerate((0.9, 0.2, None, 0.4)))
    assert filled.peak(usage, 60) == 0.9
    assert filled.peak(usage, 2) == 0.4
    assert filled.peak(generated, 60) is None


def test_peak_rate_is_the_fastest_second() -> None:
    filled = counted((0, 0), (1, 10), (2, 110), (3, 115))
    assert filled.peak_rate(generated, 60) == 100
    assert filled.peak_rate(generated, 1) == 5


def test_a_peak_rate_is_never_made_of_an_instant() -> None:
    assert counted((0, 0), (1, 10), (1.01, 60)).peak_rate(generated, 60) == 10


def test_slope_is_not_thrown_by_a_spike() -> None:
    values = [float(at) for at in range(61)]
    values[30] = 1e9
    filled = window(rank(float(at), kv_usage_ratio=value) for at, value in enumerate(values))
    assert filled.slope(usage, 60) == pytest.approx(1.0)


def test_slope_needs_its_time_and_five_values() -> None:
    ramp = [rank(float(at), kv_usage_ratio=float(at)) for at in range(30)]
    assert window(ramp).slope(usage, 60) is None
    holes = [rank(float(at), kv_usage_ratio=float(at) if at % 20 == 0 else None) for at in range(61)]
    assert window(holes).slope(usage, 60) is None


def test_observed_histograms_add_up_over_a_restart() -> None:
    samples = [
        rank(0, generation_tokens_total=5.0, queue_time=histogram((1, 3), (math.inf, 4), total=9.0)),
        rank(1, generation_tokens_total=9.0, queue_time=histogram((1, 5), (math.inf, 7), total=19.0)),
        rank(2, generation_tokens_total=1.0, queue_time=histogram((1, 1), (math.inf, 1), total=0.5)),
        rank(3, generation_tokens_total=3.0, queue_time=histogram((1, 1), (math.inf, 2), total=4.5)),
    ]
    delta = window(samples).observed(lambda sample: sample.queue_time, 3)
    assert delta is not None
    assert delta.observed == histogram((1, 2), (math.inf, 4), total=14.0)
    assert delta.seconds == 2


def test_histograms_whose_buckets_changed_are_not_compared() -> None:
    samples = [
        rank(0, queue_time=histogram((1, 3), (math.inf, 4))),
        rank(1, queue_time=histogram((2, 3), (math.inf, 9))),
    ]
    assert window(samples).observed(lambda sample: sample.queue_time, 1) is None


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        (0.5, (1.5, False)),
        (0.25, (1.0, False)),
        (0.75, (2.0, False)),
        (0.99, (2.0, True)),
        (0.125, (0.5, False)),
    ],
)
def test_quantiles_are_interpolated_and_say_when_they_saturate(
    q: float, expected: tuple[float, bool]
) -> None:
    assert histogram((1.0, 2), (2.0, 6), (math.inf, 8)).quantile(q) == expected


def test_no_quantile_of_nothing() -> None:
    assert histogram((1.0, 0), (math.inf, 0)).quantile(0.5) is None
    assert histogram((math.inf, 3)).quantile(0.5) is None


def test_a_page_that_comes_late_is_no_peak() -> None:
    def moved(at: float, gigabytes: float, read_seconds: float = 0.01) -> RankSample:
        return rank(at, swap_in_bytes_total=gigabytes * 1e9, read_seconds=read_seconds)

    # one gigabyte a second; the page asked for at 2 s is written at 7 s
    late = window([moved(0.0, 0.0), moved(1.0, 1.0), moved(2.0, 7.0, 5.0), moved(7.0, 7.0), moved(8.0, 8.0)])
    assert late.peak_rate(lambda sample: sample.swap_in_bytes_total, 60.0) == pytest.approx(1e9)


def test_a_histogram_whose_sum_fell_tells_of_no_rise() -> None:
    then = histogram((1.0, 1), (math.inf, 2), total=5.0)
    assert histogram((1.0, 2), (math.inf, 4), total=4.0).minus(then) is None
    assert histogram((1.0, 2), (math.inf, 4), total=6.0).minus(then) == histogram(
        (1.0, 1), (math.inf, 2), total=1.0
    )


def test_buckets_read_while_the_engine_was_counting_hold_what_lies_below_them() -> None:
    torn = histogram((1.0, 6), (2.0, 8), (math.inf, 9)).minus(histogram((1.0, 1), (2.0, 4), (math.inf, 6)))
    assert torn is not None
    assert torn.counts == (5, 5, 5)


def test_at_most_snaps_to_a_real_bound() -> None:
    buckets = histogram((0.1, 3), (0.25, 5), (math.inf, 9))
    assert buckets.at_most(0.2) == (0.1, 3)
    assert buckets.at_most(0.25) == (0.25, 5)
    assert buckets.at_most(0.05) is None


steps = st.lists(
    st.tuples(
        st.floats(0.05, 14.0),
        st.one_of(st.none(), st.integers(0, 500)),
        st.booleans(),
    ),
    min_size=2,
    max_size=80,
)


@given(steps, st.sampled_from([1.0, 10.0, 60.0]))
def test_no_delta_is_negative_or_more_than_what_really_happened(
    moves: list[tuple[float, int | None, bool]], seconds: float
) -> None:
    at, count, happened = 0.0, 0.0, 0.0
    total = Total()
    filled: Window[RankSample] = Window()
    for pause, rise, restarts in moves:
        at += pause
        count = (0.0 if restarts else count) + (rise or 0)
        happened += rise or 0
        sample = rank(at, generation_tokens_total=None if rise is None else count)
        filled = filled.appended(sample)
        before = total.value
        total = total.fed(sample.generation_tokens_total)
        assert before <= total.value <= happened
        delta = filled.delta(generated, seconds)
        if delta is not None:
            assert 0 <= delta.increase <= happened
            assert 0 < delta.seconds <= seconds + LONGEST_GAP_SECONDS
        peak = filled.peak_rate(generated, seconds)
        assert peak is None or peak >= 0
    assert all(b.at > a.at for a, b in itertools.pairwise(filled.samples))
    for a, b in filled.intervals(seconds):
        assert MERGE_BELOW_SECONDS <= b.at - a.at <= LONGEST_GAP_SECONDS
        assert not filled.restarted_between(a, b)


@given(st.lists(st.floats(0.1, 100, allow_nan=False), min_size=5, max_size=31), st.floats(-50, 50))
def test_slope_is_the_median_over_all_pairs(noise: list[float], gradient: float) -> None:
    values = [gradient * at + bump for at, bump in enumerate(noise)]
    filled = window(rank(float(at), kv_usage_ratio=value) for at, value in enumerate(values))
    pairs = itertools.combinations(enumerate(values), 2)
    expected = statistics.median((y - x) / (j - i) for (i, x), (j, y) in pairs)
    assert filled.slope(usage, len(values) - 1) == pytest.approx(expected)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=12),
    st.lists(st.integers(0, 50), min_size=12, max_size=12),
)
def test_histograms_subtract_to_what_was_added(first: list[int], more: list[int]) -> None:
    bounds = (*(float(index) for index in range(len(first) - 1)), math.inf)
    then = Histogram(bounds, tuple(float(count) for count in itertools.accumulate(first)), 1.0)
    extra = tuple(float(count) for count in itertools.accumulate(more[: len(first)]))
    now = then.plus(Histogram(bounds, extra, 2.5))
    assert now is not None
    assert now.minus(then) == Histogram(bounds, extra, 2.5)
    assert then.minus(now) is None or not any(extra)


def totals(*counts: float | None) -> list[float]:
    total, seen = Total(), []
    for count in counts:
        total = total.fed(count)
        seen.append(total.value)
    return seen


def test_a_total_starts_at_zero_and_never_falls() -> None:
    assert totals(100.0, 130.0, None, 5.0, 8.0) == [0, 30, 30, 30, 33]
    assert not Total().known


def test_a_counter_that_shows_up_under_our_eyes_counts_from_zero() -> None:
    assert totals(None, None, 40.0, 41.0) == [0, 0, 40, 41]
    assert not Total().fed(None).known


def test_a_counter_that_was_away_for_a_while_goes_on() -> None:
    assert totals(100.0, None, None, 130.0) == [0, 0, 0, 30]


def test_a_counter_away_across_a_restart_counts_from_zero() -> None:
    gone = Total().fed(100.0).fed(110.0).fed(None, restarted=True)
    assert gone.fed(7.0).value == 17


def test_a_total_told_of_a_restart_drops_a_rise_that_looks_real() -> None:
    assert Total().fed(10.0).fed(50.0, restarted=True).fed(51.0, restarted=False).value == 1
