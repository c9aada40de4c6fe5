from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.derive.fragmentation import FRAGMENTATION, tail_waste
from exporter.derive.phenomenon import EngineFacts
from exporter.sample import Histogram
from tests.support.derive import INFINITE, last, rank

LLAMA_70B = EngineFacts(kv_bytes_per_token=327_680)
"""80 layers x 8 KV heads x head size 128, K and V, 16 bits: 2 x 80 x 8 x 128 x 2 bytes."""

BOUNDS = ("min", "low", "expected", "high", "max")


def test_the_incident_s_1200_streams_in_blocks_of_16() -> None:
    said = last(FRAGMENTATION, [rank(0, running=1200.0, block_tokens=16.0)], LLAMA_70B)
    assert said["tail_fragmentation_tokens{expected}"] == 9_000
    assert said["tail_fragmentation_bytes{min}"] == 0
    assert said["tail_fragmentation_bytes{expected}"] == 2_949_120_000
    assert said["tail_fragmentation_bytes{max}"] == 5_898_240_000
    # expected -+ 2 x 16/sqrt(12) x sqrt(1200) = 9000 -+ 320 tokens exactly
    assert said["tail_fragmentation_bytes{low}"] == pytest.approx(8_680 * 327_680)
    assert said["tail_fragmentation_bytes{high}"] == pytest.approx(9_320 * 327_680)


def test_the_document_s_figures_for_the_same_streams() -> None:
    by_half_a_block = 1200 * 16 / 2 * 327_680
    assert by_half_a_block == 3_145_728_000
    # what it printed, 1.57 GB, is the keys only or an 8-bit cache
    assert by_half_a_block / 2 == 1_572_864_000
    expected = tail_waste(1200, (16.0,)).expected * 327_680
    assert expected < by_half_a_block < tail_waste(1200, (16.0,)).max * 327_680


def test_shares_of_the_used_blocks_and_of_the_reserve() -> None:
    sample = rank(0, running=10.0, block_tokens=32.0, kv_usage_ratio=0.8, blocks=100.0)
    said = last(FRAGMENTATION, [sample])
    assert said["tail_fragmentation_used_ratio"] == pytest.approx(155 / (80 * 32))
    assert said["tail_fragmentation_reserve_ratio"] == pytest.approx(155 / (20 * 32))


def test_the_reserve_s_share_is_absent_when_there_is_no_reserve() -> None:
    said = last(FRAGMENTATION, [rank(0, running=10.0, block_tokens=32.0, kv_usage_ratio=0.99, blocks=100.0)])
    assert "tail_fragmentation_reserve_ratio" not in said
    assert "tail_fragmentation_used_ratio" in said


def test_an_idle_engine_wastes_nothing_and_divides_by_nothing() -> None:
    said = last(FRAGMENTATION, [rank(0, running=0.0, block_tokens=16.0, kv_usage_ratio=0.0, blocks=100.0)])
    assert [said[f"tail_fragmentation_tokens{{{bound}}}"] for bound in BOUNDS] == [0] * 5
    assert "tail_fragmentation_used_ratio" not in said
    assert said["tail_fragmentation_reserve_ratio"] == 0


@pytest.mark.parametrize(
    "known", [{"running": 5.0}, {"block_tokens": 16.0}, {"running": 5.0, "kv_usage_ratio": 0.5}]
)
def test_an_unknown_block_size_or_count_gives_nothing(known: dict[str, float]) -> None:
    assert last(FRAGMENTATION, [rank(0, **known)], LLAMA_70B) == {}


def test_bytes_are_absent_while_the_bytes_a_token_are_unknown() -> None:
    said = last(FRAGMENTATION, [rank(0, running=5.0, block_tokens=16.0)])
    assert not any("bytes" in name for name in said)


def test_a_gpu_s_share_becomes_the_model_s_only_when_the_gpus_are_counted() -> None:
    sample = rank(0, running=2.0, block_tokens=16.0, kv_pool_bytes=16.0 * 40_960 * 10, pool_blocks=10.0)
    assert not any("bytes" in name for name in last(FRAGMENTATION, [sample]))
    said = last(FRAGMENTATION, [sample], EngineFacts(gpus_per_replica=8))
    assert said["tail_fragmentation_bytes{expected}"] == 15 * 327_680


def test_each_kv_group_has_a_tail_of_its_own() -> None:
    sample = rank(0, running=4.0, block_tokens=16.0, block_group_tokens=(16.0, 64.0, 64.0))
    said = last(FRAGMENTATION, [sample])
    assert said["tail_fragmentation_tokens{max}"] == 4 * (15 + 63 + 63)
    assert said["tail_fragmentation_tokens{expected}"] == 2 * (15 + 63 + 63)


def test_groups_of_unknown_sizes_are_not_guessed() -> None:
    hybrid = rank(0, running=4.0, block_tokens=16.0, blocks=1000.0, kv_capacity_tokens=4_000.0)
    assert last(FRAGMENTATION, [hybrid]) == {}


def test_settings_know_the_groups_better_than_the_engine() -> None:
    facts = EngineFacts(block_group_tokens=(256.0, 64.0))
    said = last(FRAGMENTATION, [rank(0, running=1.0, block_tokens=4.0)], facts)
    assert said["tail_fragmentation_tokens{max}"] == 255 + 63


def test_an_engine_that_tells_its_token_usage_is_believed() -> None:
    # 17-token prompts in blocks of 16 take two blocks each: 30 of 45 blocks, 255 of 720 slots
    sample = rank(
        0,
        running=15.0,
        block_tokens=16.0,
        blocks=45.0,
        kv_usage_ratio=30 / 45,
        kv_token_usage_ratio=255 / 720,
    )
    said = last(FRAGMENTATION, [sample])
    assert [said[f"tail_fragmentation_tokens{{{bound}}}"] for bound in BOUNDS] == [pytest.approx(225)] * 5


def test_sequences_shorter_than_a_block_waste_what_they_leave_empty_of_it() -> None:
    # a hybrid model's blocks: 100 tokens of prompt and a mean of 100 of the answer so far, in 1056 slots
    lengths = [Histogram((200.0, INFINITE), (40.0, 40.0), total) for total in (4_000.0, 8_000.0)]
    sample = rank(
        0,
        running=100.0,
        block_tokens=1056.0,
        request_prompt_tokens=lengths[0],
        request_generation_tokens=lengths[1],
    )
    said = last(FRAGMENTATION, [sample])
    assert said["tail_fragmentation_tokens{expected}"] == 100 * (1056 - 401 / 2)
    assert said["tail_fragmentation_tokens{max}"] == 100 * 1055
    assert said["tail_fragmentation_tokens{low}"] == pytest.approx(85_550 - 2 * 400 / math.sqrt(12) * 10)
    few = replace(sample, request_prompt_tokens=Histogram((200.0, INFINITE), (4.0, 4.0), 400.0))
    assert last(FRAGMENTATION, [few])["tail_fragmentation_tokens{expected}"] == 100 * 1055 / 2


@given(st.integers(1, 2_000), st.integers(2, 2_000))
def test_how_short_sequences_are_tells_without_a_jump(mean: int, size: int) -> None:
    waste = tail_waste(10.0, (float(size),), mean)
    longer = tail_waste(10.0, (float(size),), mean + 0.5)
    assert waste.expected - 10.0 <= longer.expected <= waste.expected
    assert tail_waste(10.0, (float(size),)).expected <= waste.expected <= waste.max
    assert 0 <= waste.low <= waste.expected <= waste.high <= waste.max


sizes = st.lists(st.integers(1, 1024).map(float), min_size=1, max_size=7).map(tuple)


@given(st.integers(0, 100_000).map(float), sizes)
def test_bounds_are_in_order(sequences: float, groups: tuple[float, ...]) -> None:
    waste = tail_waste(sequences, groups)
    assert 0 == waste.min <= waste.low <= waste.expected <= waste.high <= waste.max
    assert waste.max == sequences * sum(size - 1 for size in groups)


@given(st.integers(0, 10_000).map(float), sizes)
def test_more_sequences_waste_more(sequences: float, groups: tuple[float, ...]) -> None:
    less, more = tail_waste(sequences, groups), tail_waste(sequences + 1, groups)
    assert less.expected <= more.expected
    assert less.max <= more.max
    assert less.high <= more.high


@given(st.lists(st.integers(1, 5000), min_size=30, max_size=300), st.sampled_from([1, 8, 16, 32, 128]))
def test_the_truth_lies_within_the_hard_bounds(lengths: list[int], size: int) -> None:
    truth = sum(-length % size for length in lengths)
    waste = tail_waste(float(len(lengths)), (float(size),))
    assert waste.min <= truth <= waste.max


def test_uniform_lengths_lie_between_low_and_high_as_often_as_two_deviations_say() -> None:
    size, sequences, steps = 32, 10, 2000
    inside = 0
    for step in range(steps):
        # a linear congruence gives reproducible, evenly spread lengths without a random seed to tune
        lengths = [
            (step * 7919 + index * 104_729 + step * index * 31) % 4096 + 1 for index in range(sequences)
        ]
        waste = tail_waste(float(sequences), (float(size),))
        inside += waste.low <= sum(-length % size for length in lengths) <= waste.high
    assert inside / steps > 0.9


@pytest.mark.parametrize(("sequences", "groups"), [(-1.0, (16.0,)), (1.0, (0.0,)), (math.nan, (0.5,))])
def test_impossible_input_is_refused(sequences: float, groups: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="no tail waste of"):
        tail_waste(sequences, groups)
