"""gauge-under-rate: rates of what goes up and down."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import finds_in


@pytest.mark.parametrize(
    ("expr", "fix"),
    [
        ("rate(vllm:num_requests_running[5m]) > 1", "delta()"),
        ("sum(increase(vllm:kv_cache_usage_perc[5m])) > 1", "delta()"),
        ("irate(DCGM_FI_PROF_PCIE_RX_BYTES[1m]) > 1", "bytes a second already"),
        ("rate(sglang:num_retracted_reqs[5m]) > 0", "sglang:num_retracted_requests_total"),
        ("rate(DCGM_FI_DEV_XID_ERRORS[5m]) > 0", "changes("),
        ("rate(thrashold_swap_bytes_per_second[5m]) > 0", "take it as it is"),
    ],
)
def test_a_known_gauge_is_told(expr: str, fix: str) -> None:
    (found,) = finds_in("gauge-under-rate", expr)
    assert fix in found.fix


@pytest.mark.parametrize(
    "expr",
    [
        "rate(vllm:num_preemptions_total[5m]) > 1",
        "rate(vllm:iteration_tokens_total_sum[5m]) > 1",
        "deriv(vllm:num_requests_running[5m]) > 1",
        "rate(DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL[5m]) > 1",
        "rate(something[5m]) > 1",
        "rate(tgi_request_success[5m]) > 1",
        "rate(max_over_time(vllm:num_requests_running[5m])[10m:1m]) > 1",
    ],
)
def test_counters_and_what_is_not_known_are_not(expr: str) -> None:
    assert not finds_in("gauge-under-rate", expr)
