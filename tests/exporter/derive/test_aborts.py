from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.derive.aborts import ABORTS, SETTLE_SECONDS
from exporter.sample import EngineSample
from tests.support.derive import engine, histogram, last, rank, run

NAME = "client_aborts_total"


def by_http(at: float, http_ok: float, **finished: float) -> EngineSample:
    return engine(at, rank(at, finished_total=tuple(finished.items())), http_ok_total=http_ok)


def by_tokens(at: float, first: float, ended: float, **fields: float) -> EngineSample:
    known = {"running": 0.0, "waiting": 0.0, **fields}
    counted = [histogram((1.0, count), (math.inf, count)) for count in (first, ended)]
    return engine(at, rank(at, time_to_first_token=counted[0], end_to_end_latency=counted[1], **known))


def test_five_streams_that_were_closed() -> None:
    # vLLM issue 31503, 0.10.1.1: nothing but prompt tokens and the front end's count moved
    assert last(ABORTS, [by_http(0, 40, stop=40), by_http(1, 45, stop=40)]) == {NAME: 5}


def test_what_is_answered_and_finished_is_no_abort() -> None:
    assert last(
        ABORTS, [by_http(float(at), 10.0 * at, stop=9.0 * at, length=1.0 * at) for at in range(9)]
    ) == {NAME: 0}


def test_an_engine_that_begins_to_count_aborts_is_not_counted_twice() -> None:
    # vLLM pull request 55940 makes finished_reason="abort" move
    assert last(ABORTS, [by_http(0, 40, stop=40, abort=0), by_http(1, 46, stop=41, abort=5)]) == {NAME: 5}


def test_an_answer_counted_a_moment_after_its_request_finished_is_no_abort() -> None:
    counts = [(100, 100), (100, 103), (103, 103), (104, 106), (106, 106)]
    said = run(ABORTS, [by_http(float(at), ok, stop=done) for at, (ok, done) in enumerate(counts)])
    assert [values[NAME] for values in said] == [0, 0, 0, 0, 0]


def test_first_tokens_less_finished_without_the_front_end_s_counters() -> None:
    # vLLM issue 8115: 8060 first tokens, 3918 finished
    assert last(ABORTS, [by_tokens(0, 0, 0), by_tokens(1, 8060, 3918)]) == {NAME: 4142}


def test_running_and_swapped_sequences_have_not_left() -> None:
    there = [by_tokens(float(at), 20, 5, running=10, swapped=3) for at in range(1, 33)]
    assert last(ABORTS, [by_tokens(0, 0, 0), *there]) == {NAME: 2}


def test_preempted_sequences_in_the_queue_pass_for_aborted_only_until_they_come_back() -> None:
    busy = [by_tokens(float(at), 50, 10, running=30 if at % 5 else 40, waiting=5) for at in range(1, 100)]
    assert last(ABORTS, [by_tokens(0, 0, 0), *busy]) == {NAME: 0}


def test_a_queue_that_never_empties_still_tells_aborts_in_time() -> None:
    samples = [by_tokens(float(at), 50, 10, running=30, waiting=5) for at in range(1, 100)]
    said = [values[NAME] for values in run(ABORTS, [by_tokens(0, 40, 10, running=30, waiting=5), *samples])]
    assert said[: int(SETTLE_SECONDS)] == [0] * int(SETTLE_SECONDS)
    assert said[-1] == 10


def of_v0(at: float, first: float, ended: float, preemptions: float, **fields: float) -> EngineSample:
    sample = by_tokens(at, first, ended, preemptions_total=preemptions, **fields)
    return replace(sample, ranks=tuple(replace(each, generation="v0") for each in sample.ranks))


def test_what_v0_computes_again_is_no_client_who_left() -> None:
    # ten sequences, each preempted three times, of which each recomputation counts as a first token
    samples = [of_v0(0, 0, 0, 0), of_v0(1, 10, 0, 0, running=10)]
    samples += [
        of_v0(2.0 + at, 10 + at, 0, at + (at < 30), running=9 + (at == 30), waiting=1) for at in range(31)
    ]
    assert last(ABORTS, samples) == {NAME: 0}
    # two of them leave, eight finish
    assert last(ABORTS, [*samples, of_v0(40, 40, 8, 30)]) == {NAME: 2}


def test_who_leaves_v0_while_preempted_is_missed_and_nobody_is_made_up() -> None:
    preempted = [of_v0(0, 0, 0, 0), of_v0(1, 10, 0, 0, running=10), of_v0(2, 10, 0, 4, running=6, waiting=4)]
    gone = of_v0(3, 10, 0, 4, running=5, waiting=1)  # three of those that wait, and one that ran
    assert last(ABORTS, [*preempted, gone]) == {NAME: 1}


def test_what_v0_swaps_counts_no_second_first_token() -> None:
    busy = [of_v0(float(at), 20, 0, at, running=15, swapped=5) for at in range(1, 40)]
    left = [of_v0(float(at), 20, 0, 40, running=12, swapped=5) for at in range(40, 80)]
    assert last(ABORTS, [of_v0(0, 0, 0, 0), *busy, *left]) == {NAME: 3}


def test_v0_that_is_first_seen_to_swap_later_loses_nothing_of_its_total() -> None:
    busy = [of_v0(float(at), 20, 0, 5, running=15, waiting=0) for at in range(1, 40)]
    swapping = [of_v0(float(at), 20, 0, 8, running=12, swapped=3) for at in range(40, 80)]
    left = [of_v0(float(at), 20, 0, 8, running=8, swapped=3) for at in range(80, 120)]
    said = [values[NAME] for values in run(ABORTS, [of_v0(0, 0, 0, 0), *busy, *swapping, *left])]
    assert said == sorted(said)
    assert said[-1] == 4


def test_a_restart_keeps_the_total_and_counts_on() -> None:
    def make(at: float, http_ok: float, finished: float, started: float) -> EngineSample:
        return engine(
            at, rank(at, finished_total=(("stop", finished),)), http_ok_total=http_ok, started_at=started
        )

    samples = [make(0, 0, 0, 100), make(1, 9, 2, 100), make(2, 0, 0, 200), make(3, 5, 1, 200)]
    assert [values[NAME] for values in run(ABORTS, samples)] == [0, 7, 7, 11]


def test_a_batch_of_prompts_does_not_hide_who_leaves() -> None:
    # one completion of 1,000 prompts, then 500 clients leave after their first token
    def make(at: float, http_ok: float, first: float, ended: float) -> EngineSample:
        counted = [histogram((1.0, count), (math.inf, count)) for count in (first, ended)]
        sample = rank(
            at,
            running=0.0,
            waiting=0.0,
            finished_total=(("stop", ended),),
            time_to_first_token=counted[0],
            end_to_end_latency=counted[1],
        )
        return engine(at, sample, http_ok_total=http_ok)

    assert last(ABORTS, [make(0, 0, 0, 0), make(1, 1, 1000, 1000), make(2, 501, 1500, 1000)]) == {NAME: 500}


def test_a_route_that_is_not_counted_is_told_by_its_sequences() -> None:
    samples = [by_tokens(float(at), 100.0 * at, 95.0 * at) for at in range(60)]
    uncounted = [
        replace(
            sample,
            http_ok_total=0.0,
            ranks=tuple(replace(each, finished_total=(("stop", 95.0 * sample.at),)) for each in sample.ranks),
        )
        for sample in samples
    ]
    # that the route isn't counted shows after a second, whose aborts are lost
    assert last(ABORTS, uncounted)[NAME] == 5 * 58


def test_sequences_preempted_at_the_start_hide_nobody_who_leaves_later() -> None:
    preempted = by_tokens(0, 50, 10, running=20, waiting=30)  # 20 more have begun and wait again
    back = [by_tokens(float(at), 50, 10, running=40, waiting=10) for at in range(1, 40)]
    gone = [by_tokens(float(at), 50, 10, running=20, waiting=10) for at in range(40, 90)]
    assert last(ABORTS, [preempted, *back, *gone]) == {NAME: 20}


def test_counters_of_the_front_end_that_show_up_with_the_first_request() -> None:
    quiet = by_tokens(0, 0, 0)
    both = by_tokens(1, 10, 7)
    finished = replace(both.ranks[0], finished_total=(("stop", 7.0),))
    assert last(ABORTS, [quiet, replace(both, ranks=(finished,), http_ok_total=10.0)]) == {NAME: 3}


@pytest.mark.parametrize("sample", [engine(0, rank(0)), engine(0), engine(0, rank(0, running=3.0))])
def test_an_engine_that_tells_neither_gives_nothing(sample: EngineSample) -> None:
    assert last(ABORTS, [sample]) == {}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=60))
def test_the_total_never_falls_and_ends_at_the_truth_in_quiet(moves: list[tuple[int, int, int]]) -> None:
    finished = left = late = 0
    samples = [by_http(0, 0, stop=0)]
    for at, (finish, leave, lag) in enumerate(moves, 1):
        finished, left, late = finished + finish, left + leave, min(lag, finish)
        samples.append(by_http(float(at), finished + left - late, stop=finished))
    samples.append(by_http(len(samples) + 1.0, finished + left, stop=finished))
    said = [values[NAME] for values in run(ABORTS, samples)]
    assert said == sorted(said)
    assert said[-1] == left


def two_ranks(at: float, *, both: bool = True) -> EngineSample:
    finished = 5_000.0 + at
    ranks = [
        replace(rank(at, running=5.0, finished_total=(("stop", finished),)), rank=name)
        for name in (("0", "1") if both else ("0",))
    ]
    return engine(at, *ranks, http_ok_total=2 * finished)


def test_a_rank_missing_from_one_scrape_takes_nobody_along() -> None:
    samples = [two_ranks(float(at), both=at != 20) for at in range(60)]
    assert last(ABORTS, samples) == {NAME: 0}


def test_a_rank_that_is_scaled_away_hides_nobody_who_leaves_later() -> None:
    alone = [two_ranks(float(at), both=at < 20) for at in range(40)]
    left = [
        replace(two_ranks(float(at), both=False), http_ok_total=(5_000.0 + at) + 5_020.0 + (at - 39))
        for at in range(40, 60)
    ]
    before = replace(alone[-1], http_ok_total=(5_000.0 + 39) + 5_020.0)
    settled = [replace(sample, http_ok_total=5_000.0 + sample.at + 5_020.0) for sample in alone[20:-1]]
    assert last(ABORTS, [*alone[:20], *settled, before, *left])[NAME] == 20


def test_prompts_in_prefill_are_no_clients_who_left() -> None:
    idle = [by_tokens(float(at), 0, 0) for at in range(5)]
    prefill = [by_tokens(float(at), 0, 0, running=10) for at in range(5, 8)]
    decode = [by_tokens(float(at), 10, 0, running=10) for at in range(8, 60)]
    assert last(ABORTS, [*idle, *prefill, *decode]) == {NAME: 0}
    assert last(ABORTS, [*prefill, *decode]) == {NAME: 0}


def test_answers_on_their_way_at_the_start_are_no_clients_who_left() -> None:
    samples = [by_http(0, 100, stop=112), by_http(1, 112, stop=112), by_http(2, 115, stop=115)]
    busy = [replace(each, ranks=(replace(each.ranks[0], running=12.0),)) for each in samples]
    assert last(ABORTS, busy) == {NAME: 0}


def test_a_page_without_finished_requests_is_told_by_their_latencies() -> None:
    samples = [by_tokens(float(at), 2.0 * at, 2.0 * at) for at in range(9)]
    assert last(ABORTS, [replace(each, http_ok_total=2 * each.at) for each in samples]) == {NAME: 0}
    bare = [engine(float(at), rank(float(at)), http_ok_total=2.0 * at) for at in range(9)]
    assert last(ABORTS, bare) == {}


def test_an_abort_just_before_the_front_end_s_counters_show_up_counts_once() -> None:
    left = by_tokens(1, 1, 0)
    shown = replace(by_tokens(2, 1, 0), http_ok_total=1.0)
    shown = replace(shown, ranks=(replace(shown.ranks[0], finished_total=(("stop", 0.0),)),))
    assert last(ABORTS, [by_tokens(0, 0, 0), left, shown]) == {NAME: 1}


def test_a_read_between_the_first_finish_and_its_answer_loses_nobody() -> None:
    def make(at: float, http_ok: float | None, finished: float) -> EngineSample:
        sample = replace(by_tokens(at, finished + 5, finished).ranks[0], finished_total=(("stop", finished),))
        return engine(at, replace(sample, running=5.0), http_ok_total=http_ok)

    idle = replace(by_tokens(0, 0, 0), http_ok_total=None)
    assert last(ABORTS, [idle, make(1, None, 3), make(2, 9, 4), make(3, 12, 6)])[NAME] == 6
