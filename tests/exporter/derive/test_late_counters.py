"""Engines that count a request's tokens when it ends: nothing is made of counters that stand still meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from exporter.derive.aborts import ABORTS
from exporter.derive.latency import LATENCY
from exporter.derive.pingpong import PINGPONG_PHENOMENON
from exporter.derive.preemption import COST, THRASH
from exporter.derive.prefill import PREFILL
from exporter.derive.ranks import RANKS
from exporter.derive.stalls import STALLS
from exporter.derive.traffic import GAUGES, TOTALS
from exporter.sample import ALL_RANKS, RankSample
from tests.support.derive import Named, engine, histogram, last, rank, run

AT_END = frozenset({"generation_tokens_total", "prompt_tokens_total", "time_to_first_token"})
ANSWER_SECONDS = 40


def long_answers(seconds: int = 130, **more: Any) -> Iterator[RankSample]:  # noqa: ANN401 -- any field
    """Four sequences whose requests all take 40 s, counted as they end; ten more wait at low usage."""
    for at in range(seconds):
        ended = 4.0 * (at // ANSWER_SECONDS)
        yield rank(
            float(at),
            running=4.0,
            waiting=10.0,
            kv_usage_ratio=0.4,
            generation_tokens_total=500.0 * ended,
            prompt_tokens_total=100.0 * ended,
            preemptions_total=float(at),
            time_to_first_token=histogram((1.0, ended), (float("inf"), ended), total=ended),
            end_to_end_latency=histogram((60.0, ended), (float("inf"), ended), total=40 * ended),
            told_at_end=AT_END,
            **more,
        )


def said(phenomenon: Any, **more: Any) -> Named:  # noqa: ANN401 -- of any state
    """All that it ever said."""
    everything: Named = {}
    for values in run(phenomenon, list(long_answers(**more))):
        everything.update(values)
    return everything


def test_totals_are_right_and_rates_are_absent() -> None:
    assert said(TOTALS) == {
        "generation_tokens_total": 6000.0,
        "prompt_tokens_total": 1200.0,
    }
    assert set(said(GAUGES)) == {"sequences{running}", "sequences{waiting}"}


@pytest.mark.parametrize("phenomenon", [COST, PREFILL, PINGPONG_PHENOMENON])
def test_nothing_is_made_of_a_window_in_which_no_request_ended(phenomenon: Any) -> None:  # noqa: ANN401
    names = {name.partition("{")[0] for name in said(phenomenon)}
    assert not names & {
        "tokens_per_preemption",
        "wasted_work_ratio",
        "prefill_token_ratio",
        "head_of_line_ratio",
        "pingpong_ratio",
    }


def test_it_never_thrashes_stalls_or_freezes_while_its_steps_are_told() -> None:
    assert "thrashing" not in said(THRASH)
    stalls = said(STALLS)
    assert set(stalls) == {"engine_deadlocked"}
    beating = [
        rank(float(at), running=4.0, told_at_end=AT_END, generation_tokens_total=0.0, heartbeat=float(at))
        for at in range(100)
    ]
    assert {values.get("engine_frozen") for values in run(STALLS, beating)} == {None, 0.0}


def test_an_engine_whose_steps_end_is_frozen_after_30_s() -> None:
    beats = [
        rank(
            float(at),
            running=4.0,
            told_at_end=AT_END,
            generation_tokens_total=0.0,
            heartbeat=float(min(at, 50)),
        )
        for at in range(100)
    ]
    frozen = [values.get("engine_frozen") for values in run(STALLS, beats)]
    assert frozen.index(1.0) == 80


def test_the_gap_between_tokens_is_the_histogram_s_alone() -> None:
    assert "token_interval_seconds" not in said(LATENCY)


def test_first_tokens_told_late_are_no_aborts() -> None:
    samples = [engine(sample.at, sample) for sample in long_answers()]
    assert last(ABORTS, samples) == {}


def test_an_engine_s_own_count_of_aborts_goes_first() -> None:
    samples = [
        engine(float(at), rank(float(at), running=4.0), aborted_total=7.0 + at // 10, http_ok_total=0.0)
        for at in range(41)
    ]
    assert last(ABORTS, samples) == {"client_aborts_total": 4.0}


def test_an_engine_that_shows_its_count_with_the_first_abort_counts_it() -> None:
    samples = [engine(float(at), rank(float(at)), aborted_total=None if at < 20 else 3.0) for at in range(30)]
    assert last(ABORTS, samples) == {"client_aborts_total": 3.0}
    assert last(ABORTS, samples[:20]) == {}


def gauges_of_a_moment_ago(idle_for: int) -> list[RankSample]:
    """Tokens for 60 s, then none: the gauge of running sequences is corrected 30 s later."""
    return [
        rank(
            float(at),
            running=4.0 if at < 60 + 30 else 0.0,
            waiting=0.0,
            generation_tokens_total=100.0 * min(at, 60),
            gauges_hold_seconds=30.0,
        )
        for at in range(60 + idle_for)
    ]


def test_gauges_of_a_moment_ago_are_no_standstill() -> None:
    for values in run(STALLS, gauges_of_a_moment_ago(120)):
        assert set(values) <= {"engine_frozen", "engine_deadlocked"}
        assert values.get("engine_frozen", 0.0) == 0.0
    for values in run(LATENCY, gauges_of_a_moment_ago(120)):
        assert "token_interval_seconds" not in values


def test_gauges_of_a_moment_ago_bound_nothing_and_are_no_aborts() -> None:
    """The gauge shows 4 for 30 s after 40 have begun and all but 20 of them ended."""
    samples = [
        rank(
            float(at),
            running=4.0 if at < 60 else 20.0,
            waiting=0.0,
            preemptions_total=10.0 * at,
            time_to_first_token=histogram((1.0, 40.0), (float("inf"), 40.0)),
            end_to_end_latency=histogram((1.0, 20.0), (float("inf"), 20.0)),
            gauges_hold_seconds=30.0,
        )
        for at in range(90)
    ]
    assert last(PINGPONG_PHENOMENON, samples) == {}
    assert last(ABORTS, [engine(sample.at, sample) for sample in samples]) == {}


def test_an_engine_with_such_gauges_is_frozen_all_the_same_but_later() -> None:
    running = [
        rank(
            float(at),
            running=4.0,
            waiting=0.0,
            generation_tokens_total=min(at, 60.0),
            gauges_hold_seconds=30.0,
        )
        for at in range(180)
    ]
    frozen = [values.get("engine_frozen") for values in run(STALLS, running)]
    assert frozen.index(1.0) == 120


def test_what_a_front_end_tells_of_all_ranks_together_is_no_rank_in_the_balance() -> None:
    samples = [
        engine(
            float(at),
            rank(float(at), running=6.0, waiting=0.0),
            RankSample(float(at), "1", "m", running=2.0, waiting=0.0),
            RankSample(float(at), ALL_RANKS, "m"),
        )
        for at in range(70)
    ]
    assert last(RANKS, samples)["rank_imbalance_ratio"] == 1.5
