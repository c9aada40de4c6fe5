"""off-as-low: gauges that are -1 where the thing is off."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import finds_in

HITS = "vllm:gpu_prefix_cache_hit_rate"


@pytest.mark.parametrize("expr", [f"{HITS} < 0.3", f"avg by (pod) ({HITS}) <= 0.5", f"0.3 > {HITS}"])
def test_below_a_threshold_is_told(expr: str) -> None:
    assert len(finds_in("off-as-low", expr)) == 1


@pytest.mark.parametrize(
    "expr",
    [
        f"{HITS} > 0.3",
        f"{HITS} < -1",
        f"{HITS} >= 0 and {HITS} < 0.3",
        "vllm:kv_cache_usage_perc < 0.3",
        f"({HITS} >= 0) < 0.3",
    ],
)
def test_guarded_or_above_is_not(expr: str) -> None:
    assert not finds_in("off-as-low", expr)
