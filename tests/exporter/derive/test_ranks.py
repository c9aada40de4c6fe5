from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.derive.ranks import RANKS
from exporter.sample import EngineSample, RankSample
from tests.support.derive import engine, last, rank, run


def two(at: float, first: float, second: float | None) -> EngineSample:
    return engine(
        at,
        RankSample(at, "0", "m", running=first, waiting=0.0),
        RankSample(at, "1", "m", running=second, waiting=0.0),
    )


def test_what_the_engine_is() -> None:
    assert last(RANKS, [engine(0, generation="v1")]) == {
        "engine_info{vllm,v1}": 1,
        "engine_restarts_total": 0,
    }


def test_restarts_are_counted_by_start_time_or_by_a_counter_that_fell() -> None:
    by_time = [
        engine(float(at), started_at=started) for at, started in enumerate((10.0, 10.0, 90.0, 90.0, 200.0))
    ]
    assert [values["engine_restarts_total"] for values in run(RANKS, by_time)] == [0, 0, 1, 1, 2]
    by_counter = [
        engine(float(at), rank(float(at), generation_tokens_total=count))
        for at, count in enumerate((9.0, 12.0, 1.0))
    ]
    assert [values["engine_restarts_total"] for values in run(RANKS, by_counter)] == [0, 0, 1]


def test_a_rank_of_several_that_began_anew_is_a_restart() -> None:
    def make(at: float, second: float) -> EngineSample:
        ranks = (
            RankSample(at, "0", "m", generation_tokens_total=100.0 + at),
            RankSample(at, "1", "m", generation_tokens_total=second),
        )
        return engine(at, *ranks)

    assert last(RANKS, [make(0, 50.0), make(1, 2.0)])["engine_restarts_total"] == 1


def test_the_fullest_rank_over_the_mean() -> None:
    assert last(RANKS, [two(float(at), 30.0, 10.0) for at in range(61)])["rank_imbalance_ratio"] == 1.5


@pytest.mark.parametrize(("first", "second"), [(0.0, 0.0), (5.0, None)])
def test_nothing_to_compare(first: float, second: float | None) -> None:
    assert "rank_imbalance_ratio" not in last(RANKS, [two(float(at), first, second) for at in range(61)])


def test_a_rank_is_averaged_over_the_time_it_was_there() -> None:
    samples = [two(float(at), 10.0, 10.0) for at in range(61)]
    late = [replace(each, ranks=each.ranks[:1]) if each.at < 50 else each for each in samples]
    assert last(RANKS, late)["rank_imbalance_ratio"] == 1


def test_another_model_at_the_same_url_is_another_engine() -> None:
    models = [
        engine(float(at), RankSample(float(at), "0", "a" if at < 5 else "b", generation_tokens_total=9.0))
        for at in range(9)
    ]
    assert last(RANKS, models)["engine_restarts_total"] == 1


def test_a_rank_that_serves_two_models_is_one() -> None:
    def make(at: float) -> EngineSample:
        loads = (("a", 10.0), ("b", 0.0))
        return engine(at, *(RankSample(at, "0", name, running=load, waiting=0.0) for name, load in loads))

    assert "rank_imbalance_ratio" not in last(RANKS, [make(float(at)) for at in range(61)])


def test_one_rank_is_not_compared() -> None:
    samples = [engine(float(at), rank(float(at), running=3.0, waiting=0.0)) for at in range(61)]
    assert "rank_imbalance_ratio" not in last(RANKS, samples)
