"""V1's rules, one small scenario each. Blocks hold 4 tokens; each iteration takes a second."""

from __future__ import annotations

import pytest

from drill.serving.config import Policy
from drill.serving.content import Segment
from drill.serving.engine import Engine
from drill.serving.request import Outcome
from tests.drill.engines import SECOND, Moment, config, request, run, watch


def one_by_one(blocks: int, **changes: object) -> Engine:
    return Engine(config(blocks, **changes), SECOND, fast=False)


def test_tokens_come_one_an_iteration_and_the_last_needs_no_slot() -> None:
    engine = one_by_one(10)
    engine.submit(request(1, prompt=4, output=5))
    assert watch(engine) == [
        # the prompt's 4 tokens fill a block; each later token is computed, and stored, when the next is made
        Moment(1.0, (1,), (), (), 9, (), ()),
        Moment(2.0, (1,), (), (), 8, (), ()),
        Moment(3.0, (1,), (), (), 8, (), ()),
        Moment(4.0, (1,), (), (), 8, (), ()),
        Moment(5.0, (), (), (), 10, (), (1,)),
    ]


def test_the_budget_of_tokens_goes_to_the_running_first_and_cuts_prompts_in_chunks() -> None:
    engine = one_by_one(20, max_batched_tokens=8)
    results, records = run(engine, request(1, 6, 4), request(2, 13, 1))
    # 6 + 2 of 13; then 1 + 7; then 1 + the last 4, which yield its only token
    assert [(each.decode_tokens, each.prefill_tokens) for each in results] == [(0, 8), (1, 7), (1, 4), (1, 0)]
    assert records[2].first_token_seconds == 3.0


def test_without_chunks_a_prompt_waits_for_an_iteration_that_can_take_it_whole() -> None:
    engine = one_by_one(20, max_batched_tokens=8, chunked_prefill=False)
    results, _ = run(engine, request(1, 6, 4), request(2, 7, 1))
    assert [(each.decode_tokens, each.prefill_tokens) for each in results] == [(0, 6), (1, 7), (1, 0), (1, 0)]


def test_no_more_run_than_the_batch_has_seats() -> None:
    engine = one_by_one(20, max_sequences=2)
    for number in (1, 2, 3):
        engine.submit(request(number, 4, 3))
    assert [each.running for each in watch(engine)] == [(1, 2), (1, 2), (), (3,), (3,), ()]


def test_who_finds_no_block_sends_the_last_of_the_running_back_to_the_head_of_the_queue() -> None:
    engine = one_by_one(4)
    engine.submit(request(1, 4, 6))
    engine.submit(request(2, 4, 6))
    engine.submit(request(3, 4, 1, at=0.5))
    assert watch(engine) == [
        Moment(1.0, (1, 2), (), (), 2, (), ()),
        # each takes its second block; 3 has come, but none is left for it
        Moment(2.0, (1, 2), (3,), (), 0, (), ()),
        Moment(3.0, (1, 2), (3,), (), 0, (), ()),
        Moment(4.0, (1, 2), (3,), (), 0, (), ()),
        Moment(5.0, (1, 2), (3,), (), 0, (), ()),
        # 1 yields its last token: computing the fifth needs a third block, and 2 gives all of its own
        Moment(6.0, (), (2, 3), (), 4, (2,), (1,)),
        # 2 computes 4 + 5 tokens again, which yields the sixth; 3 is let in beside it
        Moment(7.0, (), (), (), 4, (), (2, 3)),
    ]


def test_nobody_is_let_in_during_an_iteration_that_sent_one_away() -> None:
    engine = one_by_one(5)
    engine.submit(request(1, 8, 10))
    engine.submit(request(2, 8, 10))
    engine.submit(request(3, 1, 1, at=1.5))
    moments = watch(engine, until=3.0)
    # 1 takes the fifth block, 2 finds none and has only itself to send away; then 3 would fit, and has to wait
    assert moments[1] == Moment(2.0, (1,), (2,), (), 2, (2,), ())
    assert moments[2] == Moment(3.0, (1,), (2, 3), (), 2, (), ())


def test_who_doesnt_fit_at_the_head_holds_up_smaller_ones_behind() -> None:
    engine = one_by_one(10)
    engine.submit(request(1, 20, 8))
    engine.submit(request(2, 30, 1))
    engine.submit(request(3, 1, 1))
    moments = watch(engine)
    assert all(each.waiting == (2, 3) for each in moments[:7])
    assert moments[8].finished == (2, 3)


def test_a_prompt_is_let_in_by_its_first_chunk_where_the_whole_isnt_reserved() -> None:
    asked = (request(1, 12, 4), request(2, 12, 1))
    reserving = one_by_one(5, max_batched_tokens=16)
    first_chunk = one_by_one(5, max_batched_tokens=16, reserve_whole_prompt=False)
    for engine in (reserving, first_chunk):
        for each in asked:
            engine.submit(each)
    assert watch(reserving, until=1.0)[0].running == (1,)
    moments = watch(first_chunk, until=2.0)
    assert moments[0].running == (1, 2)
    assert moments[1].preempted == (2,)  # the rest of it finds no block: resumed and sent away again, #25538


def test_a_prompt_larger_than_the_cache_is_never_let_in_and_nobody_behind_it_either() -> None:
    engine = one_by_one(4)
    engine.submit(request(1, 17, 1))
    engine.submit(request(2, 1, 1))
    assert watch(engine) == []
    assert engine.step(1000.0) is None
    engine.abort(1, at=20.0)
    assert watch(engine) == [Moment(21.0, (), (), (), 4, (), (1, 2))]


def test_a_preempted_sequence_finds_what_is_left_of_its_blocks() -> None:
    engine = one_by_one(4, prefix_caching=True)
    results, records = run(engine, request(1, 4, 6), request(2, 4, 6))
    # 2 loses 8 computed tokens at 6 s; 1's third block is taken from what was free, then 1 ends:
    # nothing else was taken, so both of 2's full blocks are still there, and only the ninth token is computed
    again = [each for each in results if each.recomputed_tokens or each.prefix_hit_tokens]
    assert len(again) == 1
    assert (again[0].prefix_hit_tokens, again[0].prefill_tokens) == (4, 5)
    assert records[2].recomputed_tokens == 4


def test_prompts_that_begin_alike_share_full_blocks_but_never_the_last_token() -> None:
    engine = one_by_one(20, prefix_caching=True)
    alike = (Segment(5, 8),)
    _, records = run(
        engine,
        request(1, 8, 1, content=alike),
        request(2, 8, 1, at=2.0, content=alike),
        request(3, 11, 1, at=4.0, content=(Segment(5, 8), Segment(6, 3))),
        request(4, 11, 1, at=6.0, content=(Segment(6, 3), Segment(5, 8))),
    )
    assert [records[number].cached_tokens for number in (1, 2, 3, 4)] == [0, 4, 8, 0]


def test_an_answer_quoted_in_the_next_prompt_is_found_too() -> None:
    engine = one_by_one(20, prefix_caching=True)
    _, records = run(
        engine,
        request(1, 6, 7, content=(Segment(1, 6),), answer=2),
        request(2, 15, 1, at=20.0, content=(Segment(1, 6), Segment(2, 7), Segment(3, 2))),
    )
    assert records[2].cached_tokens == 12


def test_the_least_recently_freed_content_is_forgotten_first() -> None:
    engine = one_by_one(4, prefix_caching=True)
    prompts = {1: Segment(1, 5), 2: Segment(2, 5), 3: Segment(3, 5)}
    order = (1, 2, 1, 3, 1, 2)
    asked = [
        request(place, 5, 1, at=2.0 * place, content=(prompts[which],)) for place, which in enumerate(order)
    ]
    _, records = run(engine, *asked)
    # each needs 2 of 4 blocks; one with content, one not: empty ones of finished requests go round first
    assert [records[place].cached_tokens for place in range(6)] == [0, 0, 4, 0, 4, 0]


def test_by_priority_the_least_urgent_goes_wherever_it_stands() -> None:
    engine = one_by_one(4, policy=Policy.PRIORITY)
    engine.submit(request(1, 4, 6, priority=5))
    engine.submit(request(2, 4, 6, priority=1))
    moments = watch(engine)
    assert moments[0].running == (2, 1)
    assert [each.preempted for each in moments if each.preempted] == [(1,)]


def test_an_abort_takes_effect_between_iterations() -> None:
    engine = one_by_one(10)
    engine.submit(request(1, 8, 50, abort_seconds=2.5))
    moments = watch(engine)
    assert [each.at for each in moments] == [1.0, 2.0, 3.0, 3.0]
    assert moments[-1] == Moment(3.0, (), (), (), 10, (), (1,))


def test_leaked_blocks_stay_used_with_nobody_in_the_engine() -> None:
    engine = one_by_one(10)
    run(engine, request(1, 8, 2))
    engine.leak(3)
    assert (engine.gauges().running, engine.gauges().used_blocks, engine.holdings()) == (0, 3, {})
    with pytest.raises(ValueError, match="8 blocks asked of a pool with 7 free"):
        engine.leak(8)


def test_requests_in_the_engine_are_known_while_they_are_in_it() -> None:
    engine = one_by_one(10)
    engine.submit(request(1, 4, 3))
    engine.submit(request(2, 4, 3, at=1.5))
    seen = []
    while engine.step() is not None:
        seen.append([record.request.request_id for record in engine.records()])
    assert seen == [[1], [1], [2], [2], []]


def test_work_that_ends_later_stays_unseen() -> None:
    engine = one_by_one(10)
    engine.submit(request(1, 8, 2))
    assert engine.step(0.5) is None
    assert engine.gauges().running == 0
    assert engine.in_flight_until == 1.0
    assert engine.step(1.0) is not None
    assert engine.gauges().running == 1


def test_a_preemption_is_reported_with_the_next_token_and_never_if_its_client_leaves() -> None:
    for leaves, reported in ((None, 1), (5.5, 0)):
        engine = one_by_one(4)
        results, records = run(engine, request(1, 4, 6), request(2, 4, 6, abort_seconds=leaves))
        assert sum(len(each.preempted) for each in results) == 1
        assert sum(each.reported_preemptions for each in results) == reported
        assert records[1].outcome is Outcome.LENGTH


def test_a_request_longer_than_the_model_is_refused() -> None:
    engine = one_by_one(10, max_model_tokens=20)
    with pytest.raises(ValueError, match=r"request 1 has 16 tokens and asks for 5: more than the 20"):
        engine.submit(request(1, 16, 5))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prompt": 0}, "must be at least 1, not 0, 1 and 1"),
        ({"at": -1.0}, "arrives at -1.0 s"),
        ({"at": float("nan")}, "arrives at nan s"),
        ({"abort_seconds": float("nan")}, "leaves at nan s"),
        ({"content": (Segment(1, 3),)}, "its content has 3 tokens, its prompt 4"),
    ],
)
def test_a_request_that_cant_be_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        request(1, **({"prompt": 4, "output": 1} | changes))  # type: ignore[arg-type]


def test_a_client_that_left_before_it_came_is_dropped_on_arrival() -> None:
    engine = one_by_one(10)
    _, records = run(engine, request(1, 4, 2, at=3.0, abort_seconds=1.0), request(2, 4, 2, at=3.0))
    assert records[1].outcome is Outcome.ABORT
    assert (records[1].finished_seconds, records[2].finished_seconds) == (3.0, 5.0)


def test_requests_have_to_come_in_order_and_once() -> None:
    engine = one_by_one(10)
    engine.submit(request(1, 4, 1, at=5.0))
    with pytest.raises(ValueError, match=r"request 2 arrives at 4\.0 s, before one submitted earlier"):
        engine.submit(request(2, 4, 1, at=4.0))
    with pytest.raises(ValueError, match="request 1 is in the engine already"):
        engine.submit(request(1, 4, 1, at=6.0))
