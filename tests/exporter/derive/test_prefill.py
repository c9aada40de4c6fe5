from __future__ import annotations

import math

import pytest

from exporter.derive.phenomenon import EngineFacts
from exporter.derive.prefill import PREFILL
from tests.support.derive import histogram, last, rank


def test_prompt_share_of_what_was_computed() -> None:
    tokens = [{"prompt_tokens_total": 300.0 * at, "generation_tokens_total": 100.0 * at} for at in range(31)]
    assert (
        last(PREFILL, [rank(float(at), **each) for at, each in enumerate(tokens)])["prefill_token_ratio"]
        == 0.75
    )
    samples = [
        rank(float(at), prompt_tokens_computed_total=100.0 * at, **each) for at, each in enumerate(tokens)
    ]
    assert last(PREFILL, samples)["prefill_token_ratio"] == 0.5


@pytest.mark.parametrize(
    ("fields", "ratio"),
    [
        # vLLM issue 31731: 30 wait for capacity behind a long prompt, 2 run, usage 0.35
        (
            {
                "running": 2.0,
                "waiting": 30.0,
                "kv_usage_ratio": 0.35,
                "waiting_by_reason": (("capacity", 30.0),),
            },
            1,
        ),
        # vLLM issue 11517 (V0): Running: 1 reqs, Pending: 3 reqs, GPU KV cache usage: 3.1 %
        ({"running": 1.0, "waiting": 3.0, "kv_usage_ratio": 0.031}, 1),
        # vLLM issue 53130: they wait for something else than blocks
        (
            {
                "running": 2.0,
                "waiting": 30.0,
                "kv_usage_ratio": 0.35,
                "waiting_by_reason": (("capacity", 0.0),),
            },
            0,
        ),
        # a full pool is no head of line
        ({"running": 9.0, "waiting": 30.0, "kv_usage_ratio": 0.99}, 0),
        ({"running": 9.0, "waiting": 0.0, "kv_usage_ratio": 0.2}, 0),
    ],
)
def test_who_stands_behind_whom(fields: dict[str, object], ratio: float) -> None:
    samples = [rank(float(at), generation_tokens_total=10.0 * at, **fields) for at in range(61)]
    assert last(PREFILL, samples)["head_of_line_ratio"] == ratio


def test_decode_that_stops_while_prompts_are_taken_in() -> None:
    samples = [
        rank(
            float(at),
            running=5.0,
            waiting=0.0,
            kv_usage_ratio=0.5,
            # of 60 s, 15 see prompt tokens and no generated ones
            prompt_tokens_total=8_000.0 * at,
            generation_tokens_total=100.0 * max(0, at - 15),
        )
        for at in range(61)
    ]
    assert last(PREFILL, samples)["head_of_line_ratio"] == 0.25


def test_a_full_batch_that_admits_as_it_finishes_holds_nobody_up() -> None:
    samples = [
        rank(
            float(at),
            running=256.0,
            waiting=100.0,
            kv_usage_ratio=0.3,
            time_to_first_token=histogram((1.0, 25.0 * at), (math.inf, 25.0 * at)),
        )
        for at in range(61)
    ]
    assert last(PREFILL, samples)["head_of_line_ratio"] == 0


@pytest.mark.parametrize("step", [1, 2, 5])
def test_a_queue_that_moves_now_and_then_moves_however_often_it_is_read(step: int) -> None:
    samples = [
        rank(
            float(at),
            running=8.0,
            waiting=1.0,
            kv_usage_ratio=0.3,
            time_to_first_token=histogram((1.0, at // 4), (math.inf, at // 4)),
        )
        for at in range(0, 121, step)
    ]
    assert last(PREFILL, samples)["head_of_line_ratio"] <= 0.1


def test_an_unknown_usage_blames_nobody() -> None:
    samples = [rank(float(at), running=1.0, waiting=30.0) for at in range(61)]
    assert "head_of_line_ratio" not in last(PREFILL, samples)


def test_long_prompts_over_the_bound_next_below_the_quota() -> None:
    none = histogram((50_000.0, 0), (100_000.0, 0), (math.inf, 0))
    some = histogram((50_000.0, 90), (100_000.0, 98), (math.inf, 100))
    samples = [rank(float(at), request_prompt_tokens=some if at else none) for at in range(0, 301, 5)]
    assert last(PREFILL, samples)["long_prompt_ratio{50000}"] == pytest.approx(0.1)
    facts = EngineFacts(long_prompt_tokens=100_000)
    assert last(PREFILL, samples, facts)["long_prompt_ratio{100000}"] == pytest.approx(0.02)


def test_prefix_hits_of_the_last_minute_not_of_a_lifetime() -> None:
    samples = [
        rank(float(at), prefix_queries_total=10_000.0 + 100.0 * at, prefix_hits_total=9_000.0 + 10.0 * at)
        for at in range(61)
    ]
    assert last(PREFILL, samples)["prefix_hit_ratio"] == pytest.approx(0.1)


def test_no_lookup_no_ratio() -> None:
    samples = [rank(float(at), prefix_queries_total=5.0, prefix_hits_total=0.0) for at in range(61)]
    assert "prefix_hit_ratio" not in last(PREFILL, samples)
