from __future__ import annotations

import pytest

from exporter.derive.blocks import BLOCKS, LEAK
from exporter.derive.phenomenon import EngineFacts
from tests.support.derive import last, rank, run


def test_used_blocks_are_whole() -> None:
    said = last(BLOCKS, [rank(0, kv_usage_ratio=232 / 255, blocks=255.0, block_tokens=32.0)])
    assert said == {
        "kv_blocks{total}": 255,
        "kv_blocks{used}": 232,
        "kv_blocks{free}": 23,
        "kv_block_tokens": 32,
        "kv_usage_ratio": 232 / 255,
        "kv_usage_ratio_peak": 232 / 255,
    }


def test_the_peak_remembers_what_a_slow_scrape_misses() -> None:
    usages = (0.2, 1.0, 0.3, 0.1)
    said = last(BLOCKS, [rank(float(at), kv_usage_ratio=usage) for at, usage in enumerate(usages)])
    assert said == {"kv_usage_ratio": 0.1, "kv_usage_ratio_peak": 1.0}


def test_an_unknown_usage_is_not_zero() -> None:
    assert last(BLOCKS, [rank(0, blocks=255.0)]) == {"kv_blocks{total}": 255}


def test_bytes_a_token_by_what_is_known() -> None:
    pool = rank(0, kv_pool_bytes=4_194_304.0, pool_blocks=256.0, block_tokens=32.0)
    assert last(BLOCKS, [pool])["kv_bytes_per_token{gpu}"] == 512
    assert "kv_bytes_per_token{model}" not in last(BLOCKS, [pool])
    assert last(BLOCKS, [pool], EngineFacts(gpus_per_replica=2))["kv_bytes_per_token{model}"] == 1024
    told = EngineFacts(kv_bytes_per_token=327_680, kv_bytes_per_token_gpu=40_960, gpus_per_replica=8)
    said = last(BLOCKS, [rank(0)], told)
    assert said == {"kv_bytes_per_token{model}": 327_680, "kv_bytes_per_token{gpu}": 40_960}


def test_a_hybrid_model_s_groups_share_the_pool() -> None:
    # 1,000 blocks that hold 4,000 tokens in all, though the block size told is 16
    hybrid = rank(
        0,
        kv_pool_bytes=8_192_000.0,
        pool_blocks=1000.0,
        blocks=1000.0,
        block_tokens=16.0,
        kv_capacity_tokens=4_000.0,
    )
    assert last(BLOCKS, [hybrid])["kv_bytes_per_token{gpu}"] == 2048


def idle(at: float, usage: float, running: float = 0.0) -> dict[str, float]:
    return {"at": at, "kv_usage_ratio": usage, "running": running, "waiting": 0.0, "blocks": 100.0}


def test_blocks_that_nobody_holds_are_a_leak_after_two_minutes() -> None:
    busy = rank(**idle(0.0, 0.25, running=1.0))
    said = run(LEAK, [busy, *(rank(**idle(float(at), 0.25)) for at in range(10, 140, 10))])
    assert [values["kv_leak"] for values in said] == [0.0] * 13 + [1.0]


def test_blocks_taken_when_the_watch_began_are_not_known_to_be_none() -> None:
    said = run(LEAK, [rank(**idle(float(at), 0.25)) for at in range(0, 130, 10)])
    assert said == [{}] * 12 + [{"kv_leak": 1.0}]


def test_a_request_in_between_starts_the_two_minutes_again() -> None:
    samples = [rank(**idle(float(at), 0.25, running=1.0 if at == 60 else 0.0)) for at in range(0, 190, 10)]
    said = [values.get("kv_leak") for values in run(LEAK, samples)]
    assert said == [None] * 6 + [0.0] * 13


@pytest.mark.parametrize("usage", [0.0, 1 / 100])
def test_an_idle_engine_s_null_block_is_no_leak(usage: float) -> None:
    # vLLM V1 before 0.10.2 never reads 0: production-stack issue 617, 9.75e-06 of 102,563 blocks
    assert last(LEAK, [rank(**idle(float(at), usage)) for at in range(0, 300, 10)]) == {"kv_leak": 0.0}


def test_a_silence_of_the_source_is_no_leak() -> None:
    assert last(LEAK, [rank(**idle(at, 0.25)) for at in (0.0, 1.0, 125.0)]) == {}


def test_a_leak_needs_to_know_that_nothing_runs() -> None:
    assert last(LEAK, [rank(float(at), kv_usage_ratio=0.5, blocks=9.0) for at in range(0, 300, 10)]) == {}
