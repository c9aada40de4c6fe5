from __future__ import annotations

from exporter.derive.traffic import ADMISSION, GAUGES, TOTALS
from tests.support.derive import engine, last, rank, run


def test_states_the_engine_does_not_have_are_absent() -> None:
    said = last(GAUGES, [rank(0, running=3.0, waiting=4.0, waiting_by_reason=(("capacity", 4.0),))])
    assert said == {"sequences{running}": 3, "sequences{waiting}": 4, "waiting_by_reason{capacity}": 4}
    assert last(GAUGES, [rank(0, swapped=2.0)]) == {"sequences{swapped}": 2}


def test_rates_speak_of_ten_seconds() -> None:
    samples = [
        rank(float(at), prompt_tokens_total=50.0 * at, generation_tokens_total=20.0 * at) for at in range(11)
    ]
    assert last(GAUGES, samples) == {"prompt_tokens_per_second": 50, "generation_tokens_per_second": 20}
    assert last(GAUGES, samples[:10]) == {}


def test_totals_start_at_zero_and_survive_a_restart() -> None:
    counts = (1000.0, 1100.0, 30.0, 50.0)
    samples = [
        rank(
            float(at),
            generation_tokens_total=count,
            prompt_tokens_total=2 * count,
            finished_total=(("stop", count / 10),),
        )
        for at, count in enumerate(counts)
    ]
    said = run(TOTALS, samples)
    assert [values["generation_tokens_total"] for values in said] == [0, 100, 100, 120]
    assert [values["prompt_tokens_total"] for values in said] == [0, 200, 200, 240]
    assert [values["requests_total{stop}"] for values in said] == [0, 10, 10, 12]


def test_an_outcome_that_shows_up_under_our_eyes_counts_from_zero() -> None:
    # V0 creates a label's series with its first observation
    samples = [
        rank(0, generation_tokens_total=1.0),
        rank(1, generation_tokens_total=90.0, finished_total=(("length", 3.0),)),
        rank(2, generation_tokens_total=99.0, finished_total=(("length", 4.0), ("stop", 1.0))),
    ]
    said = run(TOTALS, samples)
    assert "requests_total{length}" not in said[0]
    assert said[1]["requests_total{length}"] == 3
    assert (said[2]["requests_total{length}"], said[2]["requests_total{stop}"]) == (4, 1)


def test_unknown_counters_give_no_totals() -> None:
    assert last(TOTALS, [rank(0), rank(1)]) == {}


def test_rejections_by_the_limit_that_was_met() -> None:
    samples = [
        engine(float(at), admission_rejections_total=(("max_num_queued_reqs", 5.0 + at),)) for at in range(3)
    ]
    assert last(ADMISSION, samples) == {"admission_rejections_total{max_num_queued_reqs}": 2}
