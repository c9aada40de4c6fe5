from __future__ import annotations

import math

import pytest

from exporter.derive.stalls import STALLS
from exporter.sample import RankSample
from tests.support.derive import run
from tests.support.pages import ran, rank, read, written


def test_a_whole_page() -> None:
    sample = read(written("tgi"))
    (found,) = sample.ranks
    assert (sample.kind, sample.notes, sample.aborted_total) == ("tgi", (), 130)
    assert sample.admission_rejections_total == (("overloaded", 90),)
    assert (found.rank, found.model_name) == ("0", "")
    assert (found.running, found.waiting) == (22, 9)
    assert (found.kv_usage_ratio, found.kv_capacity_tokens, found.blocks) == (0.96, 64_000, None)
    assert found.finished_total == (("generation", 4), ("success", 4000))
    assert (found.generation_tokens_total, found.prompt_tokens_total) == (900_000, 4190 * 840.0)
    assert (found.tokens_so_far, found.prompt_tokens_so_far) == (None, 4190 * 840.0)
    assert found.heartbeat == 55_800
    assert found.request_time_per_output_token.mean == pytest.approx(0.035)
    assert (found.time_to_first_token, found.preemptions_total, found.swap_mode) == (None, None, None)
    assert (len(found.end_to_end_latency.bounds), len(found.request_prompt_tokens.bounds)) == (36, 101)


def test_counters_with_and_without_total() -> None:
    plain = rank("tgi_queue_size 1\ntgi_request_success 4\n")
    assert plain == rank("tgi_queue_size 1\ntgi_request_success_total 4\n")
    assert plain.finished_total == (("success", 4),)


def test_failures_that_nobody_had_yet_are_unknown() -> None:
    sample = read("tgi_queue_size 1\n")
    assert (sample.aborted_total, sample.admission_rejections_total) == (None, ())


@pytest.mark.parametrize("err", ["validation", "template"])
def test_requests_that_were_never_taken_in_have_not_finished(err: str) -> None:
    sample = read(f'tgi_request_failure{{err="{err}"}} 3\n')
    assert (sample.ranks[0].finished_total, sample.admission_rejections_total) == ((), ())


def test_an_old_release_with_summaries() -> None:
    body = (
        'tgi_request_duration{quantile="0.5"} 2\ntgi_request_duration{quantile="0.99"} 9\n'
        "tgi_request_duration_sum 30\ntgi_request_duration_count 10\n"
    )
    found = rank(body).end_to_end_latency
    assert (found.bounds, found.counts, found.mean) == ((math.inf,), (10,), 3)


def test_without_its_own_back_end_there_is_no_usage() -> None:
    assert rank("tgi_batch_current_size 3\ntgi_batch_current_max_tokens 900\n").kv_usage_ratio is None


def test_aborts_are_the_router_s_own_count() -> None:
    cycles = ran("tgi")
    told = [value.value for value in cycles[-1].snapshot.values if value.signal.name == "client_aborts_total"]
    assert told == [cycles[-1].sample.aborted_total - 130]
    assert told[0] > 60


def hung(running: int) -> list[RankSample]:
    """A back end that does nothing from the second second on, and a router that goes on taking requests in."""
    return [
        rank(
            f"tgi_batch_current_size {running if at else 1}\ntgi_queue_size {at}\n"
            f'tgi_batch_inference_count{{method="decode"}} {800 if at else 799}\n'
            f"tgi_request_input_length_sum {840 * at}\ntgi_request_input_length_count {at}\n",
            at=float(at),
        )
        for at in range(70)
    ]


def test_requests_that_the_router_takes_in_are_no_sign_of_a_back_end_that_lives() -> None:
    assert [values.get("engine_frozen") for values in run(STALLS, hung(4))][1:] == [0] * 30 + [1] * 39
    assert [values["engine_deadlocked"] for values in run(STALLS, hung(0))] == [0] * 61 + [1] * 9
