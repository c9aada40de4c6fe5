"""dead-metric: which names are dead, in which release, and what is said of them."""

from __future__ import annotations

import pytest

from alerts.lint.settings import LintSettings
from tests.alerts.lint.linting import alert, finds, finds_in, rules


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vllm:num_preemptions", "use vllm:num_preemptions_total"),
        ("ray_vllm:num_preemptions", "use vllm:num_preemptions_total"),
        ("vllm:num_requests_running_total", "use vllm:num_requests_running"),
        ("vllm:num_requests_swapped", "V1 never swaps"),
        ("vllm:cpu_cache_usage_perc", "vllm:kv_offload_load_bytes_total"),
        ("vllm:gpu_cache_usage_perc", "use vllm:kv_cache_usage_perc"),
        ("vllm:gpu_prefix_cache_hits_total", "use vllm:prefix_cache_hits_total"),
        ("vllm:time_per_output_token_seconds_sum", "use vllm:inter_token_latency_seconds"),
        ("vllm:avg_generation_throughput_toks_per_s", "use rate(vllm:generation_tokens_total[5m])"),
        ("vllm:time_to_first_token_seconds", "vllm:time_to_first_token_seconds_bucket"),
        ("vllm:iteration_tokens_total", "vllm:iteration_tokens_total_sum"),
        ("vllm:http_requests_total", "http_requests_total"),
        ("sglang:prompt_tokens", "use sglang:prompt_tokens_total"),
        ("sglang:num_retractions_sum", "use sglang:num_retracted_requests_total"),
        ("trtllm_request_success", "use trtllm_request_success_total"),
        ("tgi_request_failure_total", "use tgi_request_failure"),
        ("llamacpp:kv_cache_tokens", "nothing has taken its place"),
        ("dynamo_component_kvstats_gpu_cache_usage_percent", "use dynamo_component_gpu_cache_usage_percent"),
        (
            "inference_model_request_duration_seconds_bucket",
            "use inference_objective_request_duration_seconds_bucket",
        ),
        ("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", "use DCGM_FI_PROF_PCIE_TX_BYTES"),
        ("envoy_cluster_circuit_breakers_high_rq_max", "envoy_cluster_circuit_breakers_high_rq_open"),
    ],
)
def test_a_dead_name_is_told_with_what_to_take(name: str, words: str) -> None:
    (found,) = finds_in("dead-metric", f"max by (pod) ({name}) > 1")
    assert name in found.what
    assert words in found.fix
    assert found.line[found.place.column - 1 :].startswith(name)


@pytest.mark.parametrize(
    "name",
    [
        "vllm:num_preemptions_total",
        "vllm:num_preemptions_created",
        "vllm:kv_offload_total_bytes_total",
        "vllm:iteration_tokens_total_sum",
        "vllm:mooncake_num_failed_recvs_total",
        "vllm:num_requests_running:sum",
        "ray_vllm_num_preemptions_total",
        "sglang:num_retracted_requests_total",
        "sglang:something_new",
        "tgi_request_success",
        "up",
        "envoy_cluster_upstream_rq_total",
        "DCGM_FI_DEV_GPU_TEMP",
    ],
)
def test_a_living_name_is_not(name: str) -> None:
    assert not finds_in("dead-metric", f"{name} > 1")


def test_what_is_in_use_decides() -> None:
    old = LintSettings(releases={"vllm": "0.8.5"})
    assert not finds_in("dead-metric", "vllm:num_requests_swapped > 0", old)
    assert not finds_in("dead-metric", "vllm:gpu_cache_usage_perc > 0.9", old)
    (found,) = finds_in("dead-metric", "vllm:kv_cache_usage_perc > 0.9", old)
    assert "came with vLLM 0.9.2, and 0.8.5 is in use" in found.what
    between = LintSettings(releases={"vllm": "0.11.0"})
    assert not finds_in("dead-metric", "vllm:gpu_cache_usage_perc > 0.9", between)
    assert finds_in("dead-metric", "vllm:num_requests_swapped > 0", between)
    minor = LintSettings(releases={"vllm": "0.11"})
    assert not finds_in("dead-metric", "vllm:gpu_cache_usage_perc > 0.9", minor), "0.11.2 is in 0.11"


def test_an_or_with_its_successor_excuses_a_dead_name() -> None:
    assert not finds_in("dead-metric", "max(vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc) > 0.9")
    assert not finds_in(
        "dead-metric", "rate(vllm:num_preemptions_total[5m]) or rate(vllm:num_preemptions[5m])"
    )
    assert finds_in("dead-metric", "up == 0 or vllm:num_requests_swapped > 0"), "that is no name for the same"
    assert len(finds_in("dead-metric", "vllm:cpu_cache_usage_perc or vllm:gpu_cache_usage_perc")) == 2
    assert len(finds_in("dead-metric", "vllm:kv_cache_usage_perc and vllm:gpu_cache_usage_perc")) == 1


def test_a_name_in_a_matcher_is_a_name_and_a_recorded_one_is_alive() -> None:
    assert finds_in("dead-metric", '{__name__="vllm:num_preemptions"} > 1')
    record = {"record": "vllm:num_preemptions", "expr": "vllm:num_preemptions_total"}
    assert not finds("dead-metric", rules(record, alert("vllm:num_preemptions > 1")))
