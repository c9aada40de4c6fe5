"""summed-ratio: shares added up."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import finds_in

KV = "vllm:kv_cache_usage_perc"


@pytest.mark.parametrize(
    "expr",
    [
        f"sum({KV}) > 1",
        f"sum by (pod) ({KV}) > 1",
        f"sum without (instance) ({KV} * 100) > 1",
        f"sum(max by (pod) ({KV})) > 1",
        "sum(rate(vllm:prefix_cache_hits_total[5m]) / rate(vllm:prefix_cache_queries_total[5m])) > 1",
        "sum(DCGM_FI_DEV_GPU_UTIL) > 100",
        "sum(sglang:token_usage) > 1",
    ],
)
def test_sums_of_shares_are_told(expr: str) -> None:
    assert len(finds_in("summed-ratio", expr)) == 1


@pytest.mark.parametrize(
    "expr",
    [
        f"avg({KV}) > 1",
        f"sum({KV}) / count({KV}) > 0.9",
        f"sum by (instance, engine) ({KV}) > 0.9",
        f"sum({KV} > bool 0.9) > 3",
        f"sum({KV} * on (pod) kv_blocks) > 3",
        f"count({KV} > 0.9) > 3",
        "sum(vllm:num_requests_waiting) > 3",
        "sum(a / b) > 3",
    ],
)
def test_means_and_amounts_are_not(expr: str) -> None:
    assert not finds_in("summed-ratio", expr)
