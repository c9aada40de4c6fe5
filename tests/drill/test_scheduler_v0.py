"""V0's rules, one small scenario each. Blocks hold 4 tokens; each iteration takes a second."""

from __future__ import annotations

from dataclasses import replace

from drill.serving.config import Generation
from drill.serving.engine import Engine
from drill.serving.request import Outcome, PreemptionMode
from drill.serving.scheduler_v0 import DEATH, RECOMPUTED_GROUP
from tests.drill.engines import SECOND, Moment, config, request, run, watch

SWAP, RECOMPUTE = PreemptionMode.SWAP, PreemptionMode.RECOMPUTE


def one_by_one(blocks: int, host_blocks: int = 100, **changes: object) -> Engine:
    chosen = config(blocks, **({"generation": Generation.V0, "chunked_prefill": False} | changes))
    return Engine(replace(chosen, swap_bytes_gpu=chosen.block_bytes_gpu * host_blocks), SECOND, fast=False)


def test_prefills_go_alone_and_hold_up_all_decodes() -> None:
    engine = one_by_one(30)
    results, records = run(engine, request(1, 4, 4), request(2, 20, 2, at=1.5), request(3, 8, 1, at=2.5))
    assert [(each.decode_tokens, each.prefill_tokens) for each in results] == [
        (0, 4),
        (1, 0),
        (0, 20),
        (0, 8),
        (2, 0),
        (1, 0),
    ]
    assert results[4].token_intervals == [(3.0, 1), (2.0, 1)]
    assert records[3].outcome is Outcome.LENGTH


def test_a_prompt_longer_than_the_budget_is_given_up_and_so_is_one_that_never_fits() -> None:
    engine = one_by_one(10, max_batched_tokens=32)
    _, records = run(engine, request(1, 33, 1), request(2, 4, 1))
    assert [records[number].outcome for number in (1, 2)] == [Outcome.IGNORED, Outcome.LENGTH]
    engine = one_by_one(10, watermark_ratio=0.1)
    _, records = run(engine, request(1, 40, 1), request(2, 36, 1))
    assert [records[number].outcome for number in (1, 2)] == [Outcome.IGNORED, Outcome.LENGTH]


def test_the_watermark_stays_free_when_somebody_is_let_in_and_only_then() -> None:
    engine = one_by_one(10, watermark_ratio=0.2)
    engine.submit(request(1, 16, 18))
    engine.submit(request(2, 20, 1))
    moments = watch(engine, until=18.0)
    assert moments[0] == Moment(1.0, (1,), (2,), (), 6, (), ())
    assert moments[16].free == 2  # the first goes on into it
    assert moments[16].waiting == (2,)


def test_single_sequences_are_recomputed_by_default() -> None:
    engine = one_by_one(4)
    engine.submit(request(1, 4, 6))
    engine.submit(request(2, 4, 6))
    assert watch(engine) == [
        Moment(1.0, (1, 2), (), (), 2, (), ()),
        # V0 wants a free block at hand for each: 1 takes its second, then 2 does
        Moment(2.0, (1, 2), (), (), 0, (), ()),
        # none is free: 1 sends 2 away although its own second block has room
        Moment(3.0, (1,), (2,), (), 2, (2,), ()),
        # whose 4 + 2 tokens take both of the free blocks, and a prefill goes first
        Moment(4.0, (1, 2), (), (), 0, (), ()),
        Moment(5.0, (1,), (2,), (), 2, (2,), ()),
        Moment(6.0, (1, 2), (), (), 0, (), ()),
        Moment(7.0, (1,), (2,), (), 2, (2,), ()),
        Moment(8.0, (1, 2), (), (), 0, (), ()),
        # the same again: at 9 s 1 yields its fifth, at 11 s ...
        Moment(9.0, (), (2,), (), 4, (2,), (1,)),
        Moment(10.0, (), (), (), 4, (), (2,)),
    ]


def test_forced_to_swap_it_copies_the_victim_out_and_back_before_anybody_new() -> None:
    engine = one_by_one(4, preemption=SWAP)
    engine.submit(request(1, 4, 6))
    engine.submit(request(2, 4, 6))
    engine.submit(request(3, 4, 1, at=2.5))
    moments = watch(engine)
    assert moments[:3] == [
        Moment(1.0, (1, 2), (), (), 2, (), ()),
        Moment(2.0, (1, 2), (), (), 0, (), ()),
        Moment(3.0, (1,), (), (2,), 2, (2,), ()),
    ]
    # 3 would fit, but while one is swapped nobody new is let in; 2 comes back, needing 1 full block and 1 more
    assert moments[3] == Moment(4.0, (1, 2), (3,), (), 0, (), ())
    assert moments[4] == Moment(5.0, (1,), (3,), (2,), 2, (2,), ())


def test_what_swapping_moves_is_counted_and_recomputes_nothing() -> None:
    engine = one_by_one(4, preemption=SWAP)
    results, records = run(engine, request(1, 4, 6), request(2, 4, 6))
    # 2 goes out with two blocks in the third iteration, comes back in the fourth, goes again in the fifth
    assert [place for place, each in enumerate(results, 1) if each.swap_out_blocks] == [3, 5]
    assert sum(each.swap_out_blocks for each in results) == sum(each.swap_in_blocks for each in results) == 4
    assert sum(each.repeat_preemptions for each in results) == len(records[2].preemptions) - 1 == 1
    assert {mode for _, mode in records[2].preemptions} == {SWAP}
    assert all(each.recomputed_tokens == 0 for each in records.values())
    block = engine.config.block_bytes
    assert sum(each.swap_out_bytes for each in results) == 4 * block


def test_swapped_ones_come_back_oldest_first_and_not_in_an_iteration_that_sent_one_away() -> None:
    engine = one_by_one(6, preemption=SWAP)
    for number in (1, 2, 3):
        engine.submit(request(number, 4, 9))
    moments = watch(engine)
    assert moments[1] == Moment(2.0, (1, 2, 3), (), (), 0, (), ())
    assert moments[2] == Moment(3.0, (1, 2), (), (3,), 2, (3,), ())
    assert moments[3] == Moment(4.0, (1, 2, 3), (), (), 0, (), ())
    for one in moments:
        assert not (one.preempted and one.swapped != (*one.swapped[: -len(one.preempted)], *one.preempted))


def test_the_watermark_keeps_swapped_ones_out_longer() -> None:
    engine = one_by_one(4, preemption=SWAP, watermark_ratio=0.25)
    engine.submit(request(1, 4, 6))
    engine.submit(request(2, 4, 6, at=0.5))
    moments = watch(engine)
    sent = next(place for place, each in enumerate(moments) if each.preempted)
    back = next(place for place, each in enumerate(moments) if place > sent and 2 in each.running)
    assert moments[back - 1].finished == (1,)


def test_when_the_host_is_full_the_engine_dies_and_takes_all_with_it() -> None:
    engine = one_by_one(4, host_blocks=1, preemption=SWAP)
    results, records = run(engine, request(1, 4, 6), request(2, 4, 6))
    assert engine.dead == results[-1].died == DEATH
    assert [records[number].outcome for number in (1, 2)] == [Outcome.LOST, Outcome.LOST]
    assert engine.step() is None


def test_groups_of_several_sequences_are_swapped_by_default() -> None:
    # at their longest 4 blocks for the one, 1 + 2 x 3 for the group, and V0 wants one more for each member at hand
    engine = one_by_one(4 + 7 + 2)
    results, _ = run(engine, request(1, 6, 8), request(2, 6, 8, sequences=2))
    assert not [each for each in results if each.preempted]
    engine = one_by_one(8)
    results, records = run(engine, request(1, 6, 8), request(2, 6, 8, sequences=2))
    assert {mode for _, mode in records[2].preemptions} == {SWAP}
    assert sum(each.generated_tokens for each in results) == 8 + 2 * 8


def test_members_of_a_group_share_the_full_blocks_of_their_prompt() -> None:
    engine = one_by_one(20)
    engine.submit(request(1, 6, 8, sequences=3))
    # 6 tokens: 2 blocks; the second is everybody's own once they go on: 1 + 3, then at the ninth token 1 + 3 x 2
    assert [20 - each.free for each in watch(engine, until=5.0)] == [2, 4, 4, 7, 7]


def test_a_group_that_has_to_be_recomputed_kills_the_engine() -> None:
    engine = one_by_one(6, preemption=RECOMPUTE)
    run(engine, request(1, 6, 8), request(2, 6, 8, sequences=2))
    assert engine.dead == RECOMPUTED_GROUP


def test_chunked_decodes_go_first_and_prompts_fill_up_with_all_their_blocks_at_once() -> None:
    engine = one_by_one(20, chunked_prefill=True, max_batched_tokens=8)
    engine.submit(request(1, 4, 6))
    engine.submit(request(2, 22, 1))
    moments = []
    results = []
    while (result := engine.step()) is not None:
        results.append((result.decode_tokens, result.prefill_tokens))
        moments.append(20 - engine.memory.pool.free)
    assert results == [(0, 8), (1, 7), (1, 7), (1, 4), (1, 0), (1, 0)]
    assert moments[0] == 1 + 6


def test_chunked_lets_new_ones_in_even_while_one_is_swapped() -> None:
    engine = one_by_one(4, chunked_prefill=True, preemption=SWAP, watermark_ratio=0.25)
    engine.submit(request(1, 4, 7))
    engine.submit(request(2, 4, 7, at=0.5))
    engine.submit(request(3, 4, 1, at=2.5))
    moments = watch(engine)
    assert any(3 in each.finished and 2 in each.swapped for each in moments)
