from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from exporter.derive.latency import LATENCY, SLO
from exporter.derive.phenomenon import EngineFacts
from exporter.sample import EngineSample, Histogram, RankSample
from tests.support.derive import engine, histogram, last, rank, run


def test_sequences_times_seconds_over_tokens() -> None:
    # 10 sequences, 200 tokens a second: a token each 50 ms for each of them
    samples = [rank(float(at), running=10.0, generation_tokens_total=200.0 * at) for at in range(31)]
    assert last(LATENCY, samples) == {"token_interval_seconds": pytest.approx(0.05)}


def test_swapped_sequences_wait_too() -> None:
    samples = [
        rank(float(at), running=10.0, swapped=30.0, generation_tokens_total=200.0 * at) for at in range(31)
    ]
    assert last(LATENCY, samples)["token_interval_seconds"] == pytest.approx(0.2)


def test_begun_sequences_that_wait_again_are_told_by_the_front_end() -> None:
    begun = histogram((1.0, 25.0), (math.inf, 25.0))
    samples = [
        rank(
            float(at),
            running=10.0,
            waiting=40.0,
            generation_tokens_total=200.0 * at,
            time_to_first_token=begun,
            http_ok_total=5.0,
            finished_total=(("stop", 5.0),),
        )
        for at in range(31)
    ]
    # 25 got a first token, 5 are done: 20 clients wait for their next one
    assert last(LATENCY, samples)["token_interval_seconds"] == pytest.approx(0.1)


def test_a_batch_of_prompts_is_one_completion_and_many_sequences() -> None:
    # 1,000 sequences of 10 requests are done: the front end can't tell who has begun
    many = histogram((1.0, 1_010.0), (math.inf, 1_010.0))
    samples = [
        rank(
            float(at),
            running=10.0,
            waiting=100.0,
            generation_tokens_total=500.0 * at,
            time_to_first_token=many,
            http_ok_total=10.0,
            finished_total=(("stop", 1_000.0),),
        )
        for at in range(31)
    ]
    assert last(LATENCY, samples)["token_interval_seconds"] == pytest.approx(0.02)


def test_no_token_no_interval() -> None:
    samples = [rank(float(at), running=10.0, generation_tokens_total=7.0) for at in range(31)]
    assert "token_interval_seconds" not in last(LATENCY, samples)


def test_the_engine_s_own_mean_is_used_where_it_is_larger() -> None:
    samples = [
        rank(
            float(at),
            running=1.0,
            generation_tokens_total=100.0 * at,
            inter_token_latency=histogram((1.0, 100.0 * at), (math.inf, 100.0 * at), total=3.0 * at),
        )
        for at in range(31)
    ]
    assert last(LATENCY, samples)["token_interval_seconds"] == pytest.approx(0.03)


def test_prefill_is_no_gap_between_tokens() -> None:
    samples = [
        rank(
            float(at),
            running=10.0,
            generation_tokens_total=100.0 * at,
            prefill_time=histogram((60.0, 2.0 * at), (math.inf, 2.0 * at), total=6.0 * at),
        )
        for at in range(31)
    ]
    # of 10 sequences 6 are always in prefill
    assert last(LATENCY, samples)["token_interval_seconds"] == pytest.approx(0.04)


def test_quantiles_name_those_that_saturate() -> None:
    def at_rate(at: int) -> Histogram:
        return histogram((0.025, 90.0 * at), (2.5, 95.0 * at), (math.inf, 100.0 * at), total=1.0)

    said = last(LATENCY, [rank(float(at), inter_token_latency=at_rate(at)) for at in range(61)])
    assert said["tpot_p50_seconds"] == pytest.approx(0.025 * 50 / 90)
    assert said["tpot_p99_seconds"] == 2.5
    assert (said["quantile_saturated{tpot_p50}"], said["quantile_saturated{tpot_p99}"]) == (0, 1)
    assert not any("ttft" in name for name in said)


def test_the_incident_s_quantile_lies_in_the_bucket_from_10_to_20_seconds() -> None:
    # with the buckets of 0.8.4 and later, 18.42 s is read between two bounds
    def at_rate(at: int) -> Histogram:
        return histogram((10.0, 900.0 * at), (20.0, 1000.0 * at), (math.inf, 1000.0 * at), total=1.0)

    said = last(LATENCY, [rank(float(at), inter_token_latency=at_rate(at)) for at in range(61)])
    assert 10 < said["tpot_p99_seconds"] <= 20
    assert said["quantile_saturated{tpot_p99}"] == 0


def test_the_queue_s_99th_percentile() -> None:
    def waited(at: float) -> dict[str, object]:
        return {"queue_time": histogram((1.0, at), (5.0, 2 * at), (math.inf, 2 * at))}

    said = last(LATENCY, [rank(float(at), **waited(float(at))) for at in range(61)])
    assert said["queue_p99_seconds"] == 1 + 4 * (0.99 * 120 - 60) / 60


FACTS = EngineFacts(time_to_first_token_slo_seconds=2.0, time_per_output_token_slo_seconds=0.2)


def first_tokens(good: float, bad: float) -> Histogram:
    return histogram((1.0, good), (2.5, good + bad), (math.inf, good + bad))


def slo(counts: list[tuple[float, float]], make: Callable[[Histogram], RankSample]) -> dict[str, float]:
    return last(
        SLO, [engine(float(at), make(first_tokens(*count))) for at, count in enumerate(counts)], FACTS
    )


def test_events_are_cut_at_a_real_bound_below_the_objective() -> None:
    # the objective of 2 s lies between the bounds 1 and 2.5: only up to 1 s is known to be good
    said = slo([(5, 5), (8, 9), (18, 10)], lambda seen: rank(0, time_to_first_token=seen))
    assert said == {"slo_events_total{ttft,true}": 13, "slo_events_total{ttft,false}": 5}


def test_events_before_the_sidecar_started_are_not_counted() -> None:
    said = slo([(1000, 1000)], lambda seen: rank(0, time_to_first_token=seen))
    assert said == {"slo_events_total{ttft,true}": 0, "slo_events_total{ttft,false}": 0}


def test_an_objective_below_the_first_bucket_can_not_be_judged() -> None:
    facts = EngineFacts(time_to_first_token_slo_seconds=0.5)
    samples = [engine(float(at), rank(0, time_to_first_token=first_tokens(at, 0))) for at in range(3)]
    assert last(SLO, samples, facts) == {}


def test_a_restart_loses_an_interval_and_counts_nothing_twice() -> None:
    def make(at: int, tokens: float, good: float) -> EngineSample:
        sample = rank(float(at), generation_tokens_total=tokens, time_to_first_token=first_tokens(good, 0))
        return engine(float(at), sample)

    samples = [make(0, 100, 10), make(1, 110, 20), make(2, 3, 4), make(3, 9, 6)]
    assert [values["slo_events_total{ttft,true}"] for values in run(SLO, samples, FACTS)] == [0, 10, 10, 12]


def test_ranks_add_up() -> None:
    samples = [
        engine(
            float(at),
            rank(float(at), time_to_first_token=first_tokens(at, 0)),
            RankSample(float(at), "1", "m", time_to_first_token=first_tokens(0, 2 * at)),
        )
        for at in range(4)
    ]
    assert last(SLO, samples, FACTS) == {"slo_events_total{ttft,true}": 3, "slo_events_total{ttft,false}": 6}


def test_a_client_that_left_misses_both_objectives() -> None:
    def make(at: int, left: int) -> EngineSample:
        sample = rank(
            float(at),
            time_to_first_token=first_tokens(10 * at, 0),
            request_time_per_output_token=histogram((0.2, 5.0 * at), (math.inf, 5.0 * at)),
            finished_total=(("stop", 5.0 * at),),
        )
        return engine(float(at), sample, http_ok_total=5.0 * at + left)

    said = last(SLO, [make(0, 0), make(1, 0), make(2, 3)], FACTS)
    assert said == {
        "slo_events_total{ttft,true}": 20,
        "slo_events_total{ttft,false}": 3,
        "slo_events_total{tpot,true}": 10,
        "slo_events_total{tpot,false}": 3,
    }


def test_a_release_without_a_mean_per_request_is_judged_by_its_gaps() -> None:
    def make(at: int) -> EngineSample:
        gaps = histogram((0.2, 90.0 * at), (math.inf, 100.0 * at))
        ended = histogram((1.0, 1.0), (math.inf, 1.0))
        return engine(float(at), rank(float(at), inter_token_latency=gaps, end_to_end_latency=ended))

    said = last(SLO, [make(0), make(1)], FACTS)
    assert said == {"slo_events_total{tpot,true}": 90, "slo_events_total{tpot,false}": 10}


def test_gaps_and_requests_are_never_added_up() -> None:
    # where several processes serve, a histogram shows up with its first observation
    def make(at: int) -> EngineSample:
        gaps = histogram((0.2, 900.0 * at), (math.inf, 900.0 * at))
        done = max(0.0, at - 2.0)
        each = histogram((0.2, done), (math.inf, done)) if done else None
        sample = rank(float(at), inter_token_latency=gaps, request_time_per_output_token=each)
        return engine(float(at), sample)

    said = run(SLO, [make(at) for at in range(6)], FACTS)
    assert [values.get("slo_events_total{tpot,true}") for values in said] == [None, None, None, 1, 2, 3]


@pytest.mark.parametrize("pauses", [(1.0,), (0.3, 0.7), (0.1, 0.1, 2.0), (0.5,)])
def test_events_are_counted_once_however_the_reads_fall(pauses: tuple[float, ...]) -> None:
    at, samples = 0.0, []
    for index in range(60):
        at += pauses[index % len(pauses)]
        samples.append(engine(at, rank(at, time_to_first_token=first_tokens(4.0 * index, 1.0 * index))))
    said = last(SLO, samples, FACTS)
    assert said == {"slo_events_total{ttft,true}": 4 * 59, "slo_events_total{ttft,false}": 59}


def test_a_queue_longer_than_the_top_bucket_says_so() -> None:
    def waited(at: int) -> Histogram:
        return histogram((60.0, 1.0 * at), (math.inf, 10.0 * at))

    said = last(LATENCY, [rank(float(at), queue_time=waited(at)) for at in range(61)])
    assert (said["queue_p99_seconds"], said["quantile_saturated{queue_p99}"]) == (60, 1)


def test_an_engine_that_was_replaced_is_judged_by_what_it_tells() -> None:
    def make(at: int) -> EngineSample:
        old = at < 30
        count = float(at if old else at - 30)
        seen = histogram((0.2, count), (math.inf, count))
        each = {"request_time_per_output_token": seen} if old else {"inter_token_latency": seen}
        ended = histogram((1.0, count), (math.inf, count))
        sample = rank(float(at), started_at=100.0 if old else 900.0, end_to_end_latency=ended, **each)
        return engine(float(at), sample, started_at=sample.started_at)

    said = last(SLO, [make(at) for at in range(60)], FACTS)
    assert said == {"slo_events_total{tpot,true}": 29 + 29, "slo_events_total{tpot,false}": 0}


def test_answers_of_one_token_have_no_gap() -> None:
    samples = [
        rank(
            float(at),
            running=10.0,
            generation_tokens_total=10.0 * at,
            prefill_time=histogram((60.0, 10.0 * at), (math.inf, 10.0 * at), total=10.0 * at),
        )
        for at in range(31)
    ]
    assert "token_interval_seconds" not in last(LATENCY, samples)
