from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from exporter.derive.phenomenon import EngineFacts
from exporter.derive.prefill import PREFILL
from exporter.sample import RankSample
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


def decoding(tokens: Sequence[float], firsts: Sequence[float], **fields: object) -> list[RankSample]:
    """A second between two: running totals of generated tokens, and of requests that have got their first."""
    known = {"running": 5.0, "waiting": 0.0, "kv_usage_ratio": 0.5, **fields}
    return [
        rank(
            float(at),
            generation_tokens_total=float(made),
            time_to_first_token=histogram((1.0, begun), (math.inf, begun)),
            **known,
        )
        for at, (made, begun) in enumerate(zip(tokens, firsts, strict=True))
    ]


def a_minute(still: range, firsts: Sequence[float] = ()) -> list[RankSample]:
    """100 tokens a second but for the seconds that end in ``still``; then comes a first token."""
    made = [0.0]
    for at in range(1, 61):
        made.append(made[-1] + (0.0 if at in still else 100.0))
    begun = firsts or [float(at >= still.stop) for at in range(61)]
    return decoding([tokens + first for tokens, first in zip(made, begun, strict=True)], begun)


def test_decodes_that_stand_still_until_a_prompt_is_computed_stand_behind_it() -> None:
    """V1: a whole prompt and a token of everybody else are one iteration, and all is told at its end."""
    assert last(PREFILL, a_minute(range(20, 26)))["head_of_line_ratio"] == pytest.approx(6 / 60)


def test_first_tokens_of_prompts_that_are_computed_one_after_the_other_are_no_decodes() -> None:
    """V0: prompts go first and alone, each with a first token at its end."""
    firsts = [min(12.0, max(0.0, at - 19.0)) for at in range(61)]
    assert last(PREFILL, a_minute(range(20, 35), firsts))["head_of_line_ratio"] == pytest.approx(15 / 60)


def test_parts_of_seconds_are_told_by_the_usual_rate() -> None:
    """From 20.4 to 22.7, and a token of each of 5 at its end."""
    made, behind = [0.0], {21: 0.6, 22: 1.0, 23: 0.7}
    for at in range(1, 61):
        made.append(made[-1] + 100.0 * (1 - behind.get(at, 0.0)))
    begun = [float(at >= 23) for at in range(61)]
    samples = decoding([tokens + first for tokens, first in zip(made, begun, strict=True)], begun)
    assert last(PREFILL, samples)["head_of_line_ratio"] == pytest.approx(2.3 / 60, abs=0.001)


def test_a_standstill_that_no_first_token_ends_is_no_prefills() -> None:
    assert last(PREFILL, a_minute(range(20, 26), [0.0] * 61))["head_of_line_ratio"] == 0


def test_who_stood_still_for_longer_than_a_prefill_was_frozen() -> None:
    assert last(PREFILL, a_minute(range(20, 55)))["head_of_line_ratio"] == 0


def test_a_standstill_in_which_sequences_are_swapped_is_the_copies() -> None:
    samples = [replace(sample, swapped=float(22 <= sample.at < 25)) for sample in a_minute(range(20, 26))]
    assert last(PREFILL, samples)["head_of_line_ratio"] == 0


def test_a_prompt_that_is_computed_alone_holds_up_nobody() -> None:
    samples = decoding([float(at > 5) for at in range(61)], [float(at > 5) for at in range(61)], running=1.0)
    idle = [replace(sample, running=0.0) if sample.at == 0 else sample for sample in samples]
    assert last(PREFILL, idle)["head_of_line_ratio"] == 0


@pytest.mark.parametrize("chunk_seconds", [0.1, 0.3])
def test_prompts_in_chunks_beside_decodes_hold_up_nobody(chunk_seconds: float) -> None:
    """Each chunk is an iteration that everybody gets a token of."""
    samples = decoding(
        [5.0 * int(at / chunk_seconds) + at for at in range(61)], [float(at) for at in range(61)]
    )
    assert last(PREFILL, samples)["head_of_line_ratio"] == 0


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
