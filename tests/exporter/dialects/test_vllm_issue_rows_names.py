"""Missing, renamed and hidden names that people reported, by the issue (vllm-project/vllm unless named)."""

import math

import pytest

from exporter.sample import Histogram
from tests.exporter.dialects.vllm_text import engine, lines, rank, v0, v1

OLD_USAGE, NEW_USAGE = v1(gpu_cache_usage_perc=0.4), v1(kv_cache_usage_perc=0.5)


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        pytest.param(OLD_USAGE, 0.4, id="to 0.9.1"),
        pytest.param(OLD_USAGE + NEW_USAGE, 0.5, id="both, 0.9.2 to 0.10.2"),
        pytest.param(NEW_USAGE + OLD_USAGE, 0.5, id="both, the other way round"),
        pytest.param(NEW_USAGE, 0.5, id="from 0.11"),
        pytest.param("", None, id="neither"),
    ],
)
def test_18354_24245_29330_usage_was_renamed(text: str, usage: float | None) -> None:
    assert rank(text + v1(num_requests_running=1)).kv_usage_ratio == usage


GAP_OLD = v1(time_per_output_token_seconds_count=90, time_per_output_token_seconds_sum=9)
GAP_NEW = v1(inter_token_latency_seconds_count=80, inter_token_latency_seconds_sum=8)
GAP_REQUEST = v1(request_time_per_output_token_seconds_count=5, request_time_per_output_token_seconds_sum=0.6)


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        pytest.param(GAP_OLD + GAP_REQUEST, Histogram((math.inf,), (90,), 9), id="old"),
        pytest.param(GAP_OLD + GAP_NEW + GAP_REQUEST, Histogram((math.inf,), (80,), 8), id="both"),
        pytest.param(GAP_NEW + GAP_REQUEST, Histogram((math.inf,), (80,), 8), id="new"),
        pytest.param(GAP_REQUEST, None, id="production-stack 989: a mean a request is not its successor"),
    ],
)
def test_24110_gpustack_2985_the_token_interval_was_renamed(text: str, gap: Histogram | None) -> None:
    found = rank(text)
    assert found.inter_token_latency == gap
    assert found.request_time_per_output_token == Histogram((math.inf,), (5,), 0.6)


def test_12383_dead_throughput_gauges_are_left_alone() -> None:
    text = v0(num_requests_running=3, prompt_tokens_total=700)
    dead = v0(avg_prompt_throughput_toks_per_s=2706.1, avg_generation_throughput_toks_per_s=13395.4)
    assert engine(text + dead) == engine(text)
    assert engine(dead).ranks == ()


def test_41368_prompt_tokens_are_counted_as_they_go_not_at_the_end() -> None:
    found = rank(v1(prompt_tokens_total=80_000, request_prompt_tokens_sum=0, request_prompt_tokens_count=0))
    assert found.prompt_tokens_total == 80_000
    assert found.request_prompt_tokens.total == 0


def test_17406_without_http_series_completions_are_unknown() -> None:
    sample = engine(v0(num_requests_running=2))
    assert (sample.http_ok_total, sample.ranks[0].http_ok_total) == (None, None)


@pytest.mark.parametrize("name", ["num_preemptions", "num_preemptions_total"])
def test_inference_perf_428_455_counters_with_and_without_total(name: str) -> None:
    assert rank(v1(**{name: 41})).preemptions_total == 41


def test_inference_perf_600_client_python_1177_negotiated_underscores() -> None:
    found = rank(
        "# TYPE vllm:num_preemptions counter\n"
        'vllm_num_preemptions_total{engine="0",model_name="m"} 3.0\n'
        'vllm_iteration_tokens_total_bucket{engine="0",model_name="m",le="+Inf"} 9.0\n'
    )
    assert found.preemptions_total == 3
    assert found.iteration_tokens == Histogram((math.inf,), (9,))


@pytest.mark.parametrize("prefix", ["ray_vllm:", "ray_vllm_"])
def test_25439_ray_replicas_are_ranks_of_their_own(prefix: str) -> None:
    replicas = {"ab12": ("w1", 3, 0.9), "cd34": ("w2", 4, 0.3)}
    sample = engine(
        "process_start_time_seconds 1.7e9\n"
        + "".join(
            f'{prefix}{name}{{ReplicaId="{replica}",WorkerId="{worker}",engine="0",model_name="m"}} {value}\n'
            for replica, (worker, preemptions, usage) in replicas.items()
            for name, value in (("num_preemptions_total", preemptions), ("kv_cache_usage_perc", usage))
        )
    )
    assert [(found.rank, found.preemptions_total, found.kv_usage_ratio) for found in sample.ranks] == [
        ("0@ab12", 3, 0.9),
        ("0@cd34", 4, 0.3),
    ]
    # the process that answers is the node's agent: its start says nothing of the replicas
    assert [found.started_at for found in sample.ranks] == [None, None]


def test_25439_before_0_12_the_worker_tells_replicas_apart_and_other_labels_are_summed() -> None:
    labels = 'WorkerId="{}",SessionName="{}",engine="1",model_name="m"'
    sample = engine(
        lines(labels.format("w1", "s1"), generation_tokens_total=10, kv_cache_usage_perc=0.2)
        + lines(labels.format("w1", "s2"), generation_tokens_total=5, kv_cache_usage_perc=0.6)
        + lines(labels.format("w2", "s1"), generation_tokens_total=7)
    )
    assert [(found.rank, found.generation_tokens_total, found.kv_usage_ratio) for found in sample.ranks] == [
        ("1@w1", 15, 0.6),
        ("1@w2", 7, None),
    ]


def test_gpustack_6207_rust_front_end() -> None:
    found = rank(
        "# TYPE vllm:num_requests_running unknown\n"
        'vllm:num_requests_running{model_name="m",engine="0"} 4\n'
        "# TYPE vllm:generation_tokens unknown\n"
        'vllm:generation_tokens_total{model_name="m",engine="0"} 900\n'
        "# EOF\n"
    )
    assert (found.generation, found.running, found.generation_tokens_total) == ("v1", 4, 900)
    assert (found.blocks, found.block_tokens) == (None, None)
