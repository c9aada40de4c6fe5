"""Repeated and stale series, scale-out and restarts, by the issue (vllm-project/vllm unless named)."""

import pytest

from tests.exporter.dialects.vllm_text import cache_config, engine, lines, rank, v1
from tests.support.captures import fixture


def four_engines(**labels: str | float) -> str:
    return "".join(
        lines(f'engine="{index}",model_name="m"', kv_cache_usage_perc=0.9)
        + cache_config(
            engine=index, block_size=16, kv_cache_memory_bytes="None", num_gpu_blocks=40000, **labels
        )
        for index in range(4)
    )


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        pytest.param(four_engines(), 9999, id="a sum, repeated"),
        pytest.param(four_engines(kv_cache_size_tokens=160_000), 9999, id="the capacity agrees"),
        pytest.param(four_engines(kv_cache_size_tokens=640_000), 39999, id="the capacity refutes a sum"),
        pytest.param(four_engines(kv_cache_size_tokens=9_000_000), 9999, id="the block size is too small"),
    ],
)
def test_dp_every_engine_repeats_the_sum_of_blocks(text: str, blocks: float) -> None:
    assert [found.blocks for found in engine(text).ranks] == [blocks] * 4


def test_dp_an_engine_without_gauges_yet_has_its_share_of_the_sum() -> None:
    configs = [cache_config(block_size=16, num_gpu_blocks=20_000, engine=engine) for engine in "01"]
    first = v1(num_requests_running=1, kv_cache_usage_perc=0.5, inter_token_latency_seconds_count=3)
    (found,) = engine("".join(configs) + first).ranks
    assert (found.rank, found.blocks) == ("0", 9_999)


def test_dp_blocks_are_summed_over_the_engines_of_one_process_only() -> None:
    sample = engine(
        "".join(
            lines(f'ReplicaId="{replica}",engine="0",model_name="m"', num_requests_running=1)
            + cache_config(ReplicaId=replica, engine=0, block_size=16, num_gpu_blocks=blocks)
            for replica, blocks in {"x": 500, "y": 700}.items()
        )
    )
    assert [(found.rank, found.blocks) for found in sample.ranks] == [("0@x", 500), ("0@y", 700)]
    assert "ReplicaId" not in dict(sample.config)


def test_monitoring_dashboard_samples_1188_usages_are_not_added() -> None:
    assert [found.kv_usage_ratio for found in engine(four_engines()).ranks] == [0.9] * 4


def test_28792_pid_series_collapse_by_max() -> None:
    labels = 'engine="0",model_name="m",pid="{}"'
    sample = engine(
        lines(labels.format(4882), kv_cache_usage_perc=0.65, num_requests_running=5)
        + lines(labels.format(4883), kv_cache_usage_perc=0.7, num_requests_running=4)
    )
    assert [(found.kv_usage_ratio, found.running) for found in sample.ranks] == [(0.7, 5)]


def test_21257_only_the_last_engine_speaks() -> None:
    assert [
        found.rank for found in engine(lines('engine="1",model_name="m"', num_requests_running=0)).ranks
    ] == ["1"]


def test_gie_2950_miles_2023_engines_behind_one_pod_stay_apart() -> None:
    model = "deepseek-v4-flash-w8a8-mtp"
    sample = engine(
        f'vllm:num_requests_running{{engine="0",model_name="{model}"}} 0.0\n'
        f'vllm:num_requests_running{{engine="1",model_name="{model}"}} 0.0\n'
    )
    assert [(found.rank, found.model_name, found.running) for found in sample.ranks] == [
        ("0", model, 0),
        ("1", model, 0),
    ]


def test_13303_gie_354_2287_states_and_timestamps_are_left_alone() -> None:
    sample = engine(
        'vllm:lora_requests_info{max_lora="4",running_lora_adapters="a,b",waiting_lora_adapters=""} 1.73e9\n'
        + "".join(
            lines(f'engine="0",model_name="m",sleep_state="{state}"', engine_sleep_state=1) for state in "ab"
        )
    )
    assert sample.ranks == ()


def test_production_stack_318_a_router_shows_what_it_passes_on() -> None:
    found = rank(
        'vllm:num_requests_running{server="http://a:8000"} 3\n'
        'vllm:num_requests_running{server="http://b:8000"} 4\n'
        'vllm:gpu_cache_usage_perc{server="http://a:8000"} 0.5\n'
        'vllm:gpu_cache_usage_perc{server="http://b:8000"} 0.7\n'
    )
    assert (found.running, found.kv_usage_ratio, found.model_name) == (7, 0.7, "")
    assert (found.preemptions_total, found.blocks, found.waiting) == (None, None, None)


def test_two_models_on_one_engine_own_no_configuration() -> None:
    sample = engine(
        lines('model_name="a"', num_requests_running=1)
        + lines('model_name="b"', num_requests_running=2)
        + cache_config(block_size=16, num_gpu_blocks=100)
    )
    assert [(found.model_name, found.running, found.blocks) for found in sample.ranks] == [
        ("a", 1, None),
        ("b", 2, None),
    ]
    assert sample.notes == ("config_ambiguous",)


def test_counter_resets_are_restarts() -> None:
    body = fixture("vllm-0.32.0/112.prom")
    before, later = engine(body), engine(fixture("vllm-0.32.0/113.prom"))
    assert not later.restarted_since(before)
    reborn = engine(body.replace(b"1.79600356787e+09", b"1.79600399999e+09"))
    assert reborn.restarted_since(later)
    # several API servers tell no start time: fallen counters do
    fresh = lines('engine="0",model_name="tiny"', generation_tokens_total=3)
    assert engine(fresh).restarted_since(engine(fixture("vllm-0.32.0-dp2-api2/029.prom")))


def test_a_replaced_ray_replica_is_a_new_rank() -> None:
    old, new = (
        rank(lines(f'ReplicaId="{replica}",engine="0",model_name="m"', generation_tokens_total=9))
        for replica in "xy"
    )
    assert (old.rank, new.rank) == ("0@x", "0@y")
