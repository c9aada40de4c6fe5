from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.derive.headroom import HEADROOM_PHENOMENON
from exporter.derive.request_lengths import mean_remaining
from exporter.sample import Histogram, RankSample
from tests.support.derive import histogram, last, rank, run

ANSWERS = histogram((100.0, 0), (200.0, 10), (math.inf, 10), total=1_500.0)
"""Ten answers between 100 and 200 tokens long, 150 on average."""
PROMPTS = histogram((500.0, 10), (math.inf, 10), total=4_000.0)


def filling(at: int, per_second: float, start: float = 600.0, **fields: object) -> RankSample:
    usage = min(1.0, (start + per_second * at) / 1000)
    return rank(float(at), kv_usage_ratio=usage, blocks=1000.0, running=5.0, waiting=0.0, **fields)


def test_a_slow_ramp_is_forecast() -> None:
    said = last(HEADROOM_PHENOMENON, [filling(at, 2.0) for at in range(61)])
    assert said["kv_exhaustion_seconds"] == pytest.approx((1000 - 720) / 2)


def test_no_forecast_below_half_usage_or_without_a_rise_or_before_a_minute() -> None:
    ramps = (
        [filling(at, 2.0, start=100.0) for at in range(61)],
        [filling(at, -1.0, start=900.0) for at in range(61)],
        [filling(at, 0.0) for at in range(61)],
        [filling(at, 2.0) for at in range(30)],
    )
    assert [last(HEADROOM_PHENOMENON, ramp) for ramp in ramps] == [{}, {}, {}, {}]


def test_a_trend_does_not_run_across_a_restart() -> None:
    old = [rank(float(at), kv_usage_ratio=0.05, blocks=1000.0, started_at=100.0) for at in range(45)]
    new = [rank(float(at), kv_usage_ratio=0.6, blocks=1000.0, started_at=900.0) for at in range(45, 80)]
    assert last(HEADROOM_PHENOMENON, [*old, *new]) == {}


def test_an_empty_pool_is_0_seconds_away_from_the_first_sample_on() -> None:
    assert last(HEADROOM_PHENOMENON, [filling(0, 0.0, start=985.0)])["kv_exhaustion_seconds"] == 0


def test_waiting_for_capacity_above_90_percent_is_exhaustion() -> None:
    queue = {"waiting_by_reason": (("capacity", 3.0), ("deferred", 0.0))}
    deferred = {"waiting_by_reason": (("capacity", 0.0), ("deferred", 3.0))}
    assert last(HEADROOM_PHENOMENON, [filling(0, 0.0, start=920.0, **queue)]) == {"kv_exhaustion_seconds": 0}
    assert last(HEADROOM_PHENOMENON, [filling(0, 0.0, start=920.0, **deferred)]) == {}
    assert last(HEADROOM_PHENOMENON, [filling(0, 0.0, start=850.0, **queue)]) == {}


def test_demand_counts_what_is_taken_waits_and_is_still_to_come() -> None:
    sample = rank(
        0,
        kv_usage_ratio=0.5,
        blocks=1000.0,
        block_tokens=16.0,
        running=4.0,
        waiting=20.0,
        request_generation_tokens=ANSWERS,
        request_prompt_tokens=PROMPTS,
    )
    said = last(HEADROOM_PHENOMENON, [sample])
    # all answers in one bucket: no spread, so a running answer has half of 150 to go
    assert said["kv_headroom_tokens"] == pytest.approx(500 * 16 - 4 * 75)
    prompt_blocks = (400 + 7.5) / 16
    assert said["kv_demand_ratio"] == pytest.approx((500 + 20 * prompt_blocks + 4 * 75 / 16) / 1000)


@given(out=st.integers(0, 8), blocks_each=st.integers(1, 60), waiting=st.integers(0, 50))
def test_what_is_asked_for_stays_as_it_is_when_sequences_are_swapped_out(
    out: int, blocks_each: int, waiting: int
) -> None:
    sample = rank(
        0,
        kv_usage_ratio=(8 - out) * blocks_each / 500,
        blocks=500.0,
        block_tokens=16.0,
        running=8.0 - out,
        waiting=float(waiting),
        swapped=float(out),
        swap_tier_blocks=1000.0,
        swap_tier_usage_ratio=out * blocks_each / 1000,
        request_generation_tokens=ANSWERS,
        request_prompt_tokens=PROMPTS,
    )
    wanted = 8 * blocks_each + waiting * (400 + 7.5) / 16 + 8 * 75 / 16
    assert last(HEADROOM_PHENOMENON, [sample])["kv_demand_ratio"] == pytest.approx(wanted / 500)


def test_a_swapped_sequence_of_unknown_size_asks_for_a_prompt_at_least_and_a_cache_for_nothing() -> None:
    known = {
        "kv_usage_ratio": 0.5,
        "blocks": 1000.0,
        "block_tokens": 16.0,
        "running": 4.0,
        "waiting": 0.0,
        "request_generation_tokens": ANSWERS,
        "request_prompt_tokens": PROMPTS,
    }
    untold = last(HEADROOM_PHENOMENON, [rank(0, swapped=2.0, **known)])
    offload = {"swap_mode": "offload", "swap_tier_usage_ratio": 0.9, "swap_tier_blocks": 1000.0}
    cached = last(HEADROOM_PHENOMENON, [rank(0, **offload, **known)])
    assert untold["kv_demand_ratio"] == pytest.approx((500 + 2 * 407.5 / 16 + 6 * 75 / 16) / 1000)
    assert cached["kv_demand_ratio"] == pytest.approx((500 + 4 * 75 / 16) / 1000)


def test_the_mix_of_the_last_five_minutes_replaces_the_engine_s_whole_life() -> None:
    old = histogram((10.0, 90), (1000.0, 90), (math.inf, 90), total=900.0)
    new = histogram((10.0, 90), (1000.0, 110), (math.inf, 110), total=900.0 + 10_000.0)
    samples = [
        rank(
            float(at),
            kv_usage_ratio=0.5,
            blocks=1000.0,
            block_tokens=16.0,
            running=1.0,
            request_generation_tokens=old if at < 200 else new,
        )
        for at in range(0, 301, 5)
    ]
    said = run(HEADROOM_PHENOMENON, samples)
    assert said[0]["kv_headroom_tokens"] == pytest.approx(8_000 - 5)
    assert said[-1]["kv_headroom_tokens"] == pytest.approx(8_000 - 250)


def test_sequences_that_wait_for_something_else_are_not_short_of_blocks() -> None:
    deferred = {"waiting_by_reason": (("deferred", 3.0),)}
    assert last(HEADROOM_PHENOMENON, [filling(0, 0.0, start=920.0, **deferred)]) == {}


def test_without_traffic_there_is_no_headroom_to_tell() -> None:
    silent = histogram((10.0, 0), (math.inf, 0), total=0.0)
    sample = rank(
        0, kv_usage_ratio=0.1, blocks=10.0, block_tokens=16.0, running=0.0, request_generation_tokens=silent
    )
    assert last(HEADROOM_PHENOMENON, [sample]) == {}


# buckets are narrow against the lengths here: what is in them is all that can be known
@given(st.lists(st.integers(100, 900), min_size=1, max_size=200))
def test_the_rest_of_an_answer_lies_near_the_inspection_paradox(lengths: list[int]) -> None:
    bounds = (*(float(bound) for bound in range(10, 901, 10)), math.inf)
    counts = tuple(float(sum(length <= bound for length in lengths)) for bound in bounds)
    rest = mean_remaining(Histogram(bounds, counts, float(sum(lengths))))
    exact = sum(length * length for length in lengths) / (2 * sum(lengths))
    assert rest is not None
    assert rest == pytest.approx(exact, rel=0.15)
    assert rest >= sum(lengths) / len(lengths) / 2 * (1 - 1e-9)


@given(st.lists(st.integers(1, 900), min_size=1, max_size=200))
def test_the_rest_of_an_answer_is_never_below_half_of_the_mean(lengths: list[int]) -> None:
    # whatever the buckets hide: E[L^2] is at least E[L] squared
    bounds = (*(float(bound) for bound in range(10, 901, 10)), math.inf)
    counts = tuple(float(sum(length <= bound for length in lengths)) for bound in bounds)
    rest = mean_remaining(Histogram(bounds, counts, float(sum(lengths))))
    assert rest is not None
    assert sum(lengths) / len(lengths) / 2 * (1 - 1e-9) <= rest <= 900
