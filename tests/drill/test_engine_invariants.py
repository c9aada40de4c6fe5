"""Whatever is asked of an engine: blocks add up, every request ends once, tokens come out as asked, time rises."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drill.serving.blocks import Ids
from drill.serving.config import EngineConfig, Generation, Policy
from drill.serving.content import Segment
from drill.serving.engine import Engine
from drill.serving.kv_memory import KvMemory
from drill.serving.request import Outcome, PreemptionMode, Record, Request
from drill.serving.sequences import Sequence
from drill.serving.step_result import StepResult
from drill.serving.step_time import MeasuredTimes
from tests.drill.engines import SECOND, config

BLOCK = 4
TIMES = MeasuredTimes(0.013, 0.0007, 0.0011, 0.000003, 0.0021)


@st.composite
def configs(draw: st.DrawFn) -> EngineConfig:
    blocks = draw(st.integers(12, 40))
    more: dict[str, object] = {
        "max_batched_tokens": draw(st.sampled_from([48, 64, 200])),
        "max_sequences": draw(st.sampled_from([2, 4, 16])),
        "prefix_caching": draw(st.booleans()),
        "watermark_ratio": draw(st.sampled_from([0.0, 0.05])),
    }
    if draw(st.booleans()):
        more |= {
            "generation": Generation.V0,
            "chunked_prefill": draw(st.booleans()),
            "preemption": draw(st.sampled_from([None, PreemptionMode.SWAP, PreemptionMode.RECOMPUTE])),
        }
        chosen = config(blocks, BLOCK, **more)
        return replace(chosen, swap_bytes_gpu=chosen.block_bytes_gpu * draw(st.sampled_from([40, 400])))
    more |= {
        "reserve_whole_prompt": draw(st.booleans()),
        "long_prefill_tokens": draw(st.sampled_from([0, 8])),
        "policy": draw(st.sampled_from(list(Policy))),
    }
    chosen = config(blocks, BLOCK, **more)
    below = chosen.block_bytes * draw(st.sampled_from([0, 20, 200])) * chosen.prefix_caching
    return replace(chosen, offload_bytes=below)


@st.composite
def workloads(draw: st.DrawFn) -> list[Request]:
    requests = []
    arrival = 0.0
    for number in range(draw(st.integers(1, 14))):
        arrival += draw(st.floats(0, 0.5))
        shared = draw(st.integers(0, 20))
        own = draw(st.integers(1, 24))
        content = (Segment(7, shared), Segment(draw(st.integers(100, 102)), own))[0 if shared else 1 :]
        leaves = draw(st.none() | st.floats(0, 2.0))
        requests.append(
            Request(
                number,
                arrival,
                shared + own,
                draw(st.integers(1, 24)),
                content=content if draw(st.booleans()) else (),
                abort_seconds=None if leaves is None else arrival + leaves,
                priority=draw(st.integers(0, 2)),
            )
        )
    return requests


def check_blocks(engine: Engine) -> None:
    pool = engine.memory.pool
    holders = Counter(chain.from_iterable(engine.holdings().values()))
    assert pool.free + len(holders) == pool.blocks
    assert all(pool.holders(block) == count for block, count in holders.items())
    assert all(len(set(table)) == len(table) for table in engine.holdings().values())
    if not engine.config.prefix_caching:
        assert all(count == 1 for count in holders.values())
    size = engine.config.block_tokens
    queues = engine.scheduler
    for one in chain(queues.running, queues.waiting, queues.swapped):
        assert one.computed <= one.held * size or one.host_blocks
        assert one.computed < one.length
    unfilled = engine.unfilled_slots()
    filled = sum(one.computed for one in queues.running) + sum(one.computed for one in queues.waiting)
    assert unfilled >= 0
    assert unfilled == sum(map(len, engine.holdings().values())) * size - filled


def run(engine: Engine, requests: list[Request]) -> tuple[list[StepResult], list[Record]]:
    for each in requests:
        engine.submit(each)
    results: list[StepResult] = []
    while (result := engine.step()) is not None:
        results.append(result)
        check_blocks(engine)
        assert len(results) < 20_000
    return results, [record for result in results for record in result.finished]


def assert_stands_as_v1_does(engine: Engine, stuck: list[Sequence]) -> None:
    """V1 with a tier below can stand still for ever: vLLM issue 45388, pull request 57841.

    Blocks that came for one further back are kept, the head of the queue doesn't fit beside them, and nobody is let
    past it.
    """
    head, pool = stuck[0], engine.memory.pool
    assert engine.config.generation is Generation.V1
    assert engine.config.offload_bytes
    assert not engine.scheduler.running
    assert head.held == 0
    assert any(one.held for one in stuck[1:])
    wanted = (
        head.length
        if engine.config.reserve_whole_prompt
        else min(head.length, engine.config.max_batched_tokens)
    )
    assert head.blocks_for(wanted, engine.config.block_tokens) + engine.memory.watermark_blocks > pool.free
    assert sum(one.held for one in stuck) == engine.config.usable_blocks - pool.free


@settings(max_examples=150, deadline=None, print_blob=True)
@given(configs(), workloads(), st.booleans())
def test_the_books_balance(chosen: EngineConfig, requests: list[Request], fast: bool) -> None:  # noqa: FBT001
    largest = max(each.prompt_tokens + each.output_tokens for each in requests)
    if chosen.generation is Generation.V1 and -(-largest // BLOCK) > chosen.usable_blocks:
        return  # V1 tries for ever: see test_scheduler_v1
    engine = Engine(chosen, TIMES, fast=fast)
    results, records = run(engine, requests)
    stuck = [] if engine.dead else list(engine.scheduler.waiting)
    if stuck:
        assert_stands_as_v1_does(engine, stuck)

    ended = [record.request.request_id for record in records]
    assert sorted([*ended, *(one.request.request_id for one in stuck)]) == [
        each.request_id for each in requests
    ]
    if engine.dead is None and not stuck:
        assert not engine.holdings()
        assert engine.memory.pool.free == chosen.usable_blocks
        assert engine.gauges().running == engine.gauges().waiting == engine.gauges().swapped == 0

    ends = [result.started_seconds + result.seconds for result in results]
    assert all(one.started_seconds >= end - 1e-9 for one, end in zip(results[1:], ends, strict=False))
    for record in records:
        asked = record.request.output_tokens
        if record.outcome is Outcome.LENGTH:
            assert record.generated_tokens == asked
        assert record.generated_tokens <= asked
        assert record.finished_seconds is not None
        assert record.finished_seconds >= record.request.arrival_seconds
        if record.outcome is Outcome.ABORT:
            assert record.request.abort_seconds is not None
            assert record.finished_seconds >= record.request.abort_seconds
    made = [record.generated_tokens for record in records]
    made += [one.length - one.request.prompt_tokens for one in stuck]
    assert sum(result.generated_tokens for result in results) == sum(made)
    intervals = sum(count for result in results for _, count in result.token_intervals)
    assert intervals == sum(max(0, tokens - 1) for tokens in made)


@settings(max_examples=80, deadline=None, print_blob=True)
@given(configs(), workloads())
def test_preempted_work_is_done_again(chosen: EngineConfig, requests: list[Request]) -> None:
    chosen = replace(chosen, prefix_caching=False, offload_bytes=0.0)
    largest = max(each.prompt_tokens + each.output_tokens for each in requests)
    if -(-largest // BLOCK) > chosen.usable_blocks:
        return
    _, records = run(Engine(chosen, TIMES), [replace(each, abort_seconds=None) for each in requests])
    for record in records:
        if record.outcome is not Outcome.LENGTH:
            continue
        assert record.computed_tokens - record.recomputed_tokens >= record.request.prompt_tokens
        modes = {mode for _, mode in record.preemptions}
        if modes != {PreemptionMode.RECOMPUTE}:
            assert record.recomputed_tokens == 0 or PreemptionMode.RECOMPUTE in modes


@settings(max_examples=80, deadline=None, print_blob=True)
@given(configs(), workloads())
def test_runs_of_like_iterations_come_to_the_same_as_one_by_one(
    chosen: EngineConfig, requests: list[Request]
) -> None:
    largest = max(each.prompt_tokens + each.output_tokens for each in requests)
    if chosen.generation is Generation.V1 and -(-largest // BLOCK) > chosen.usable_blocks:
        return
    slow, slow_records = run(Engine(chosen, TIMES, fast=False), requests)
    fast, fast_records = run(Engine(chosen, TIMES), requests)
    assert sum(result.iterations for result in fast) == sum(result.iterations for result in slow)
    for one, other in zip(slow_records, fast_records, strict=True):
        assert one.request == other.request
        assert one.outcome is other.outcome
        assert one.generated_tokens == other.generated_tokens
        assert one.cached_tokens == other.cached_tokens
        assert len(one.preemptions) == len(other.preemptions)
        assert one.finished_seconds == pytest.approx(other.finished_seconds)
        assert one.first_token_seconds == pytest.approx(other.first_token_seconds)


@settings(max_examples=30, deadline=None, print_blob=True)
@given(configs(), workloads())
def test_the_same_calls_give_the_same_results_bit_for_bit(
    chosen: EngineConfig, requests: list[Request]
) -> None:
    largest = max(each.prompt_tokens + each.output_tokens for each in requests)
    if chosen.generation is Generation.V1 and -(-largest // BLOCK) > chosen.usable_blocks:
        return
    assert run(Engine(chosen, TIMES), requests) == run(Engine(chosen, TIMES), requests)


class Watched(KvMemory):
    """Knows what each block really holds, and compares when one is found again."""

    def __init__(self, like: KvMemory) -> None:
        self.__dict__.update(like.__dict__)
        self.truth: dict[int, tuple[object, ...]] = {}

    def adopt(self, sequence: Sequence, found: Ids) -> None:
        for place, block in enumerate(found.tolist()):
            assert self.truth[block] == tokens_of(sequence)[: (place + 1) * BLOCK]
        super().adopt(sequence, found)

    def publish(self, sequence: Sequence, tokens: int) -> None:
        self.write(sequence, tokens)
        super().publish(sequence, tokens)

    def drop(self, sequence: Sequence, *, returns: bool) -> None:
        self.write(sequence, sequence.computed)
        super().drop(sequence, returns=returns)

    def write(self, sequence: Sequence, count: int) -> None:
        tokens = tokens_of(sequence)[:count]
        for place in range(min(sequence.held, len(tokens) // BLOCK)):
            self.truth[int(sequence.table[place])] = tokens[: (place + 1) * BLOCK]


def tokens_of(sequence: Sequence) -> tuple[object, ...]:
    """What each of its tokens is, told apart by content and place in it."""
    asked = sequence.request
    content = asked.content or (Segment(-1 - asked.request_id, asked.prompt_tokens),)
    prompt = [(part.content, index) for part in content for index in range(part.tokens)]
    return (
        *prompt,
        *((-1000 - asked.request_id, index) for index in range(sequence.length - sequence.prompt)),
    )


@settings(max_examples=80, deadline=None, print_blob=True)
@given(configs(), workloads())
def test_the_prefix_cache_gives_only_blocks_of_the_same_beginning(
    chosen: EngineConfig, requests: list[Request]
) -> None:
    chosen = replace(chosen, prefix_caching=True, policy=Policy.FCFS)
    largest = max(each.prompt_tokens + each.output_tokens for each in requests)
    if -(-largest // BLOCK) > chosen.usable_blocks:
        return
    engine = Engine(chosen, TIMES, fast=False)
    watched = Watched(engine.memory)
    engine.memory = engine.scheduler.memory = watched
    for each in requests:
        engine.submit(each)
    while engine.step() is not None:
        check_blocks(engine)


def test_a_table_is_made_of_different_blocks_even_when_prompts_are_alike() -> None:
    engine = Engine(config(30, prefix_caching=True), SECOND)
    for number in range(2):
        engine.submit(Request(number, 0.5 * number, 17, 10, content=(Segment(1, 17),)))
    while engine.step(2.0) is not None:
        check_blocks(engine)
    first, second = engine.holdings().values()
    assert first[:4] == second[:4]
    assert set(first[4:]).isdisjoint(second[4:])
