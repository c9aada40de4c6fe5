"""lifetime-average: means since the beginning."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import board, finds, finds_in


@pytest.mark.parametrize(
    "expr",
    [
        "x_sum / x_count > 1",
        "avg(x_sum) / avg(x_count) > 1",
        "sum by (a) (x_sum) / sum by (a) (x_count) > 1",
        "sum(vllm:prefix_cache_hits_total) / sum(vllm:prefix_cache_queries_total) < 0.3",
        "x_sum / clamp_min(x_count, 1) > 1",
        "max_over_time((x_sum / x_count)[1h:1m]) > 1",
    ],
)
def test_sums_over_counts_are_told(expr: str) -> None:
    assert len(finds_in("lifetime-average", expr)) == 1


@pytest.mark.parametrize(
    "expr",
    [
        "rate(x_sum[5m]) / rate(x_count[5m]) > 1",
        "(x_sum - x_sum offset 5m) / (x_count - x_count offset 5m) > 1",
        "x_sum / y_count > 1",
        "node_filesystem_free_bytes / node_filesystem_size_bytes < 0.1",
        "sum(vllm:kv_cache_usage_perc) / count(vllm:kv_cache_usage_perc) > 1",
        "x_sum > 1",
    ],
)
def test_rates_differences_and_gauges_are_not(expr: str) -> None:
    assert not finds_in("lifetime-average", expr)


def test_panels_are_looked_at_too() -> None:
    assert finds("lifetime-average", board("sum(x_sum) / sum(x_count)", kind="stat"))
