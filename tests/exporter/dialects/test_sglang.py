from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.derive.fragmentation import FRAGMENTATION
from exporter.sample import ALL_RANKS, Histogram
from tests.support.derive import last
from tests.support.pages import ran, rank, read, written

LABELS = {"engine_type": "unified", "model_name": "m", "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": "0"}


def lines(values: Mapping[str, float], prefix: str = "sglang:", **labels: str) -> str:
    """A scheduler's series."""
    inside = ",".join(f'{name}="{value}"' for name, value in {**LABELS, **labels}.items())
    return "".join(f"{prefix}{name}{{{inside}}} {value}\n" for name, value in values.items())


def test_a_whole_page_of_the_main_branch() -> None:
    sample = read(written("sglang"))
    (found,) = sample.ranks
    assert (sample.kind, sample.notes, sample.aborted_total) == ("sglang", (), 120)
    assert (found.rank, found.model_name) == ("0", "Qwen/Qwen3-8B")
    assert (found.running, found.waiting, found.swapped, found.paused) == (24, 8, None, None)
    assert found.waiting_by_reason == (("capacity", 7), ("deferred", 1))
    assert (found.kv_usage_ratio, found.blocks, found.block_tokens) == (0.96, 1000, 64)
    assert (found.block_group_tokens, found.kv_capacity_tokens) == ((64,), 64_000)
    assert found.preemptions_total == 640
    assert (found.generation_tokens_total, found.prompt_tokens_total) == (960_000, 3_500_000)
    assert found.prompt_tokens_computed_total == 2_400_000
    assert (found.prefix_queries_total, found.prefix_hits_total) == (3_100_000, 800_000)
    assert (found.swap_mode, found.swap_tier_usage_ratio) == ("offload", 0.75)
    assert (found.swap_in_bytes_total, found.swap_out_bytes_total) == (30_965_760_000, 604_569_600_000)
    assert found.finished_total == (("finished", 4000),)
    assert (found.told_at_end, found.gauges_hold_seconds) == (frozenset(), 30)
    counts = {
        "time_to_first_token": (4160, 4160 * 1.4),
        "inter_token_latency": (930_000, 930_000 * 0.021),
        "end_to_end_latency": (4000, 4000 * 9.5),
        "queue_time": (4200, 4200 * 0.9),
        "request_prompt_tokens": (4000, 4000 * 840.0),
        "request_generation_tokens": (4000, 4000 * 225.0),
    }
    for field, (count, total) in counts.items():
        histogram: Histogram = getattr(found, field)
        assert (histogram.count, histogram.total) == (count, pytest.approx(total))
        assert histogram.bounds[-1] == math.inf


def test_paused_requests_wait_for_weights_and_are_neither_swapped_nor_preempted() -> None:
    found = rank(lines({"num_running_reqs": 3, "num_paused_reqs": 5, "num_retracted_reqs": 4}))
    assert (found.swapped, found.paused, found.preemptions_total) == (None, None, None)


def test_tensor_parallel_ranks_repeat_one_engine_and_data_parallel_ones_are_apart() -> None:
    sample = read(written("sglang-0.5.10-dp2"))
    first, second, whole = sample.ranks
    assert [found.rank for found in sample.ranks] == ["0", "1", ALL_RANKS]
    assert (first.running, second.running) == (30, 10)
    assert (first.preemptions_total, second.preemptions_total) == (300, 100)
    assert (first.generation_tokens_total, second.generation_tokens_total) == (400_000, 200_000)
    assert (first.queue_time.count, second.queue_time.count) == (3000, 1000)
    assert (first.block_tokens, first.blocks) == (1, 100_000)
    # the front end tells no rank
    assert (whole.running, whole.generation_tokens_total, whole.kv_usage_ratio) == (None, None, None)
    assert (whole.time_to_first_token.count, whole.finished_total) == (4040, (("finished", 4000),))
    assert sample.aborted_total == 40


def test_tokens_of_ranks_are_not_counted_a_second_time_by_the_front_end() -> None:
    last = ran("sglang-0.5.10-dp2")[-1].snapshot.values
    told = {value.labels[1] for value in last if value.signal.name == "generation_tokens_total"}
    assert told == {"0", "1"}
    assert {value.labels[1] for value in last if value.signal.name == "tpot_p99_seconds"} == {ALL_RANKS}


def test_an_old_release_counts_tokens_at_the_end_and_tells_no_pages() -> None:
    found = rank(written("sglang-0.4.9"))
    assert found.told_at_end == {"generation_tokens_total", "prompt_tokens_total"}
    assert (found.generation_tokens_total, found.tokens_so_far) == (7_557_572, None)
    assert (found.blocks, found.block_tokens, found.kv_usage_ratio) == (None, None, 0.28)
    assert (found.prefix_hits_total, found.prefix_queries_total) == (400_000, 8_128_902)
    assert found.heartbeat == 123_859


@pytest.mark.parametrize("prefix", ["sglang:", "sglang_", "ray_sglang_", "ray_sglang:"])
@pytest.mark.parametrize("total", ["", "_total"])
def test_prefixes_and_totals(prefix: str, total: str) -> None:
    found = rank(
        lines({"num_running_reqs": 1, f"num_retracted_requests{total}": 7}, prefix=prefix, dp_rank="3")
    )
    assert (found.rank, found.running, found.preemptions_total) == ("3", 1, 7)


def test_priorities_stand_beside_their_total() -> None:
    body = lines({"num_running_reqs": 9, "num_queue_reqs": 5}, priority="")
    body += lines({"num_running_reqs": 6, "num_queue_reqs": 5}, priority="0")
    body += lines({"num_running_reqs": 3, "num_queue_reqs": 0}, priority="1")
    found = rank(body)
    assert (found.running, found.waiting) == (9, 5)


def test_front_end_series_of_priorities_and_streams_add_up() -> None:
    stem = "sglang:time_to_first_token_seconds_count"
    found = rank(
        lines({"num_running_reqs": 1})
        + f'{stem}{{model_name="m",priority="0",is_streaming="true"}} 3\n'
        + f'{stem}{{model_name="m",priority="1",is_streaming="true"}} 4\n'
        + f'{stem}{{model_name="m",priority="1",is_streaming="false"}} 5\n'
    )
    assert found.time_to_first_token.count == 12


POOL = {
    "num_running_reqs": 10,
    "num_queue_reqs": 0,
    "cache_hit_rate": 0,
    "token_usage": 0.5,
    "num_used_tokens": 32_000,
    "decode_sum_seq_lens": 31_700,
    "max_total_num_tokens": 64_000,
    "page_size": 64,
    "num_pages": 1000,
}


def page_slots(tokens: int) -> int:
    """Slots that so many tokens take, in pages of 64."""
    return -(-tokens // 64) * 64


@given(
    st.lists(st.integers(65, 3000), min_size=1, max_size=12),
    st.integers(0, 40),
    st.integers(0, 4000),
    st.sampled_from([0, 0.1]),
)
def test_no_page_makes_tails_exact_that_may_hold_a_shared_prefix_or_a_prompt(
    lengths: list[int], shared_pages: int, prompt: int, hit_rate: float
) -> None:
    """As SGLang counts: a prefix that all share is held once and added up for each, a prompt is taken and not held.

    Its hit rate is 0 after each decode step that is reported, whatever was shared; and a prefill renews what is
    taken while ``decode_sum_seq_lens`` stands.
    """
    shared = min(64 * shared_pages, *((length - 1) // 64 * 64 for length in lengths))
    taken = sum(map(page_slots, lengths)) - shared * (len(lengths) - 1) + page_slots(prompt)
    tails = sum(page_slots(length) - length for length in lengths)
    told = {
        "num_running_reqs": len(lengths),
        "cache_hit_rate": hit_rate,
        "token_usage": taken / 64_000,
        "num_used_tokens": taken,
        "decode_sum_seq_lens": sum(lengths),
    }
    said = last(FRAGMENTATION, [rank(lines(POOL | told))])
    assert said["tail_fragmentation_tokens{min}"] <= tails <= said["tail_fragmentation_tokens{max}"]


def test_a_hybrid_model_has_a_usage_and_no_blocks() -> None:
    found = rank(lines(POOL | {"token_usage": 0.9, "full_token_usage": 0.5, "swa_token_usage": 0.9}))
    assert (found.kv_usage_ratio, found.blocks, found.block_tokens) == (0.9, None, None)


@pytest.mark.parametrize("name", ["token_usage", "full_token_usage"])
def test_a_usage_above_1_is_cut_and_told_of(name: str) -> None:
    sample = read(lines({"num_running_reqs": 1, name: 1.35}))
    assert (sample.ranks[0].kv_usage_ratio, sample.notes) == (1, ("usage_above_1",))


def test_pages_of_one_token_leave_no_tails() -> None:
    pages = {"page_size": 1, "num_pages": 64_000, "decode_sum_seq_lens": 32_000}
    said = last(FRAGMENTATION, [rank(lines(POOL | pages))])
    assert {said[f"tail_fragmentation_tokens{{{bound}}}"] for bound in ("min", "expected", "max")} == {0}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"swa_available_tokens": 9000}, id="a hybrid model has pools of several sizes"),
        pytest.param({"mamba_usage": 0.1}, id="a hybrid model of another kind"),
        pytest.param({"page_size": 0}, id="no page size"),
    ],
)
def test_pages_of_a_size_that_is_not_told_have_no_tails(change: dict[str, float]) -> None:
    assert last(FRAGMENTATION, [rank(lines(POOL | change))]) == {}


def test_an_info_tells_the_pages_of_older_releases() -> None:
    body = lines({name: value for name, value in POOL.items() if name not in {"page_size", "num_pages"}})
    body += lines({"cache_config_info": 1}, page_size="64", num_pages="1000")
    found = rank(body)
    assert (found.blocks, found.block_tokens) == (1000, 64)


def test_a_page_without_schedulers_is_half_a_page() -> None:
    sample = read('sglang:num_requests_total{model_name="m"} 4\n')
    assert sample.notes == ("names_half_there",)
    assert (sample.ranks[0].finished, sample.ranks[0].running) == (4, None)


def test_caches_without_a_model_belong_to_the_one_that_is_there() -> None:
    body = lines({"num_running_reqs": 1}) + 'sglang:load_back_bytes_total{cache_type="HiRadixCache"} 640\n'
    found = rank(body)
    assert (found.model_name, found.swap_in_bytes_total, found.swap_mode) == ("m", 640, "offload")
