"""V1's tier below the GPU, on engines whose iterations take a second each and whose blocks take a tenth to copy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drill.serving.content import Segment
from drill.serving.engine import Engine
from drill.serving.offload import OffloadTier
from tests.drill.engines import SECOND, config, request, run

BLOCK_SECONDS = 0.1


def tiered(blocks: int, below: int, **changes: object) -> Engine:
    chosen = config(blocks, prefix_caching=True, **changes)
    engine = Engine(replace(chosen, offload_bytes=chosen.block_bytes * below), SECOND, fast=False)
    assert engine.tier is not None
    engine.tier.block_seconds = BLOCK_SECONDS
    return engine


def test_full_blocks_are_written_through_once_and_only_once() -> None:
    engine = tiered(20, 50)
    alike = (Segment(1, 9),)
    results, _ = run(engine, request(1, 9, 4, content=alike), request(2, 9, 1, at=10.0, content=alike))
    # 9 + 3 computed tokens fill 3 blocks; of the second request's, the two of the prompt are there already
    stored = sum(each.tier_store_bytes for each in results) / engine.config.block_bytes
    assert stored == pytest.approx(3, abs=1e-6)
    assert engine.tier is not None
    assert engine.tier.used == 2  # what nobody else could ask for isn't looked up, and isn't kept


def test_blocks_the_gpu_forgot_are_loaded_back_while_the_sequence_waits_aside() -> None:
    engine = tiered(6, 50)
    alike = (Segment(1, 21),)
    for each in (
        request(1, 21, 1, content=alike),
        request(2, 21, 1, at=5.0),
        request(3, 21, 1, at=10.0, content=alike),
    ):
        engine.submit(each)
    engine.step(20.0)
    engine.step(20.0)
    assert engine.step(10.1) is None
    assert engine.scheduler.deferred == 1
    result = engine.step(20.0)
    # 5 blocks take half a second to come; only the last token is computed
    assert result is not None
    assert result.started_seconds == pytest.approx(10.5)
    assert (result.prefill_tokens, result.finished[0].cached_tokens) == (1, 20)
    assert result.tier_load_bytes == pytest.approx(5 * engine.config.block_bytes)


def test_a_preempted_sequence_finds_below_what_the_gpu_had_to_give_away() -> None:
    engine = tiered(6, 50)
    results, records = run(engine, request(1, 8, 16), request(2, 8, 16))
    assert records[2].preemptions
    assert sum(each.tier_hit_tokens for each in results) > 0
    assert records[2].recomputed_tokens < 8


def test_the_least_recently_used_makes_room() -> None:
    tier = OffloadTier(3, 1.0, 1.0, 4)
    engine = tiered(20, 3)
    engine.tier = engine.scheduler.tier = tier  # type: ignore[union-attr]
    prompts = [(Segment(number, 5),) for number in range(5)]
    run(engine, *(request(number, 5, 1, at=10.0 * number, content=prompts[number]) for number in range(5)))
    assert tier.used == 3


def test_what_cant_be_loaded_by_anybody_blocks_nobody_else() -> None:
    engine = tiered(8, 50, max_sequences=2)
    alike = (Segment(1, 21),)
    _, records = run(
        engine,
        request(1, 21, 1, content=alike),
        request(2, 29, 1, at=5.0),
        request(3, 21, 1, at=10.0, content=alike),
        request(4, 3, 1, at=10.0),
    )
    assert records[4].first_token_seconds == pytest.approx(11.0)  # beside the load of 3
    assert records[3].first_token_seconds == pytest.approx(12.0)
