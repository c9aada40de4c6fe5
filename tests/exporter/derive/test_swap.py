from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.derive.phenomenon import EngineFacts
from exporter.derive.swap import RATES, TIER, TOTALS
from exporter.sample import RankSample
from tests.support.derive import last, rank, run


def test_blocks_follow_from_bytes_where_the_engine_counts_none() -> None:
    pool = {"kv_pool_bytes": 4_194_304.0, "pool_blocks": 256.0, "block_tokens": 32.0}
    samples = [
        rank(float(at), swap_in_bytes_total=0.0, swap_out_bytes_total=16_384.0 * 380 * at, **pool)
        for at in range(11)
    ]
    one_gpu = EngineFacts(gpus_per_replica=1)
    said = last(TOTALS, samples, one_gpu)
    assert said["swap_bytes_total{out}"] == 62_259_200
    assert said["swap_blocks_total{out}"] == pytest.approx(3_800)
    assert said["swap_bytes_total{in}"] == 0
    rates = last(RATES, samples, one_gpu)
    assert rates["swap_blocks_per_second{out}"] == pytest.approx(380)
    assert rates["swap_bytes_per_second{out}"] == pytest.approx(6_225_920)


def test_the_engine_s_own_block_counter_is_preferred() -> None:
    samples = [
        rank(float(at), swap_in_blocks_total=10.0 * at, swap_in_bytes_total=1e9 * at) for at in range(3)
    ]
    assert last(TOTALS, samples)["swap_blocks_total{in}"] == 20


def test_an_engine_that_moves_nothing_it_can_count_has_no_swap_signals() -> None:
    assert last(TOTALS, [rank(0, preemptions_total=5.0), rank(1, preemptions_total=9.0)]) == {}
    assert last(RATES, [rank(float(at)) for at in range(20)]) == {}


def test_a_series_that_shows_up_late_is_absent_before() -> None:
    samples = [rank(0), rank(1, swap_in_bytes_total=500.0), rank(2, swap_in_bytes_total=800.0)]
    assert [values.get("swap_bytes_total{in}") for values in run(TOTALS, samples)] == [None, 500, 800]


def test_a_burst_of_one_second_is_seen_a_minute_later() -> None:
    moved = [0.0, 0.0, 9e9] + [9e9] * 50
    said = last(RATES, [rank(float(at), swap_out_bytes_total=value) for at, value in enumerate(moved)])
    assert said["swap_bytes_per_second{out}"] == 0
    assert said["swap_bytes_per_second_peak{out}"] == 9e9


def v0(at: float, preemptions: float, **fields: object) -> RankSample:
    """vLLM V0: 500 of 512 blocks for 10 sequences."""
    known = {"blocks": 512.0, "kv_usage_ratio": 500 / 512, "block_tokens": 16.0, "running": 10.0}
    return rank(at, preemptions_total=preemptions, **{**known, "swapped": 0.0, **fields})


def test_v0_s_swapped_bytes_are_estimated_once_it_was_seen_to_swap() -> None:
    facts = EngineFacts(kv_bytes_per_token=327_680)
    samples = [v0(0, 3), v0(1, 3), v0(2, 5, swapped=2.0), v0(3, 5)]
    said = run(TOTALS, samples, facts)
    assert [values.get("swap_bytes_estimate_total") for values in said[:2]] == [None, None]
    # two preemptions of 50 blocks
    assert said[2]["swap_bytes_estimate_total"] == 2 * 50 * 16 * 327_680
    assert said[3]["swap_bytes_estimate_total"] == said[2]["swap_bytes_estimate_total"]


def test_an_engine_adds_its_bytes_up_over_its_gpus() -> None:
    # eight GPUs of 5,120 bytes a token each: a block of 16 tokens is 655,360 bytes in all
    pool = {"kv_pool_bytes": 5_120.0 * 16 * 100, "pool_blocks": 100.0, "block_tokens": 16.0}
    samples = [rank(float(at), swap_in_bytes_total=655_360.0 * 1000 * at, **pool) for at in range(2)]
    eight = EngineFacts(gpus_per_replica=8)
    assert last(TOTALS, samples, eight)["swap_blocks_total{in}"] == pytest.approx(1000)
    assert "swap_blocks_total{in}" not in last(TOTALS, samples)


def test_a_block_s_size_that_is_not_told_for_a_moment_moves_nothing() -> None:
    pool = {"kv_pool_bytes": 900.0 * 16 * 100, "pool_blocks": 100.0, "block_tokens": 16.0}
    facts = EngineFacts(kv_bytes_per_token=1000.0, gpus_per_replica=1)
    samples = [
        rank(
            float(at),
            swap_in_bytes_total=14_400.0 * (1000 + at),
            **(pool if at != 5 else {"block_tokens": 16.0}),
        )
        for at in range(10)
    ]
    said = [values["swap_blocks_total{in}"] for values in run(TOTALS, samples, facts)]
    assert said == sorted(said)
    assert said[-1] == pytest.approx(9, abs=0.2)


def test_what_was_preempted_before_the_first_swap_was_recomputed() -> None:
    facts = EngineFacts(kv_bytes_per_token=327_680)
    samples = [v0(0, 0), v0(1, 100), v0(2, 101, swapped=1.0), replace(v0(3, 101), kv_usage_ratio=None)]
    said = [values.get("swap_bytes_estimate_total") for values in run(TOTALS, samples, facts)]
    one = 50 * 16 * 327_680
    assert said == [None, None, one, one]


def test_v0_that_recomputes_never_gets_an_estimate() -> None:
    facts = EngineFacts(kv_bytes_per_token=327_680)
    samples = [v0(float(at), 3.0 * at, swap_tier_usage_ratio=0.0, swap_tier_blocks=1024.0) for at in range(5)]
    assert last(TOTALS, samples, facts) == {}


@pytest.mark.parametrize(
    ("fields", "enabled"),
    [
        ({"swap_mode": "swap", "swap_tier_blocks": 1024.0, "swapped": 0.0}, 1),
        ({"swap_mode": "offload"}, 1),
        ({"swap_tier_bytes": 8e9}, 1),
        ({"swap_tier_blocks": 0.0, "swapped": 0.0}, 0),
        ({"prefix_queries_total": 900.0, "external_queries_total": 0.0}, 0),
        ({"prefix_queries_total": 0.0, "external_queries_total": 0.0}, None),
        ({"prefix_queries_total": 900.0}, None),
        ({}, None),
    ],
)
def test_whether_kv_can_leave_the_gpu(fields: dict[str, object], enabled: float | None) -> None:
    assert last(TIER, [rank(0, **fields)]).get("swap_tier_enabled") == enabled


def test_what_leaves_and_comes_straight_back_is_told_from_a_write_through() -> None:
    def moved(into: float, out: float) -> list[RankSample]:
        return [
            rank(float(at), swap_in_bytes_total=into * at, swap_out_bytes_total=out * at) for at in range(61)
        ]

    name = "transfer_reciprocity_ratio"
    assert last(RATES, moved(5e6, 5e6))[name] == 1
    assert last(RATES, moved(1e6, 5e6))[name] == pytest.approx(0.2)
    assert last(RATES, moved(0, 5e6))[name] == 0
    assert name not in last(RATES, moved(0, 0))


def test_swapped_sequences_keep_their_peak() -> None:
    said = last(TIER, [rank(0, swapped=3.0), rank(1, swapped=0.0)])
    assert (said["swapped_sequences"], said["swapped_sequences_peak"]) == (0, 3)
