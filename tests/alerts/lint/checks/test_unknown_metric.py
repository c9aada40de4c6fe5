"""unknown-metric: names that look like an engine's."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import alert, finds, finds_in, rules


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("vllm:num_request_waiting", "did you mean vllm:num_requests_waiting?"),
        ("vllm:quantum_flux", "take a name that vLLM has"),
        ("vllm_num_preemptions_total", "use vllm:num_preemptions_total"),
        ("vllm_time_to_first_token_seconds_bucket", "use vllm:time_to_first_token_seconds_bucket"),
        ("thrashold_kv_usage", "did you mean thrashold_kv_usage_ratio?"),
        ("thrashold_swap_bytes_per_second_max", "did you mean thrashold_swap_bytes_per_second?"),
    ],
)
def test_an_unknown_name_is_told_with_what_is_near(name: str, fix: str) -> None:
    (found,) = finds_in("unknown-metric", f"{name} > 1")
    assert found.fix == fix
    assert not finds_in("dead-metric", f"{name} > 1")


@pytest.mark.parametrize(
    "name",
    [
        "thrashold_kv_usage_ratio_peak",
        "thrashold_build_info",
        "ray_vllm_kv_cache_usage_perc",
        "my_vllm:thing",
        "vllm:current_qps",
        "vllm_ttft_seconds",
        "sglang:new",
    ],
)
def test_others_are_not(name: str) -> None:
    assert not finds_in("unknown-metric", f"{name} > 1")


def test_what_another_rule_records_is_known() -> None:
    made = {"record": "vllm:pressure", "expr": "vllm:num_requests_waiting > 10"}
    assert not finds("unknown-metric", rules(alert("vllm:pressure > 1"), made))
