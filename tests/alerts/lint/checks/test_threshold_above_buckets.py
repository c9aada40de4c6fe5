"""threshold-above-buckets: quantiles that can't be."""

from __future__ import annotations

import pytest

from alerts.lint.settings import LintSettings
from tests.alerts.lint.linting import finds_in

OLD = LintSettings(releases={"vllm": "0.8.3"})


def quantile(name: str) -> str:
    return f"histogram_quantile(0.99, sum by (le) (rate(vllm:{name}_bucket[5m])))"


@pytest.mark.parametrize(
    ("name", "limit", "newest", "old"),
    [
        ("time_per_output_token_seconds", 5, 0, 1),
        ("time_per_output_token_seconds", 2.5, 0, 1),
        ("time_per_output_token_seconds", 2, 0, 0),
        ("inter_token_latency_seconds", 80, 1, 1),
        ("inter_token_latency_seconds", 79, 0, 1),
        ("time_to_first_token_seconds", 30, 0, 1),
        ("time_to_first_token_seconds", 3000, 1, 1),
        ("e2e_request_latency_seconds", 120, 0, 1),
        ("request_num_preemptions", 20, 1, 1),
    ],
)
def test_the_release_decides_how_far_buckets_reach(name: str, limit: float, newest: int, old: int) -> None:
    assert len(finds_in("threshold-above-buckets", f"{quantile(name)} > {limit}")) == newest
    assert len(finds_in("threshold-above-buckets", f"{quantile(name)} > {limit}", OLD)) == old


def test_factors_sides_and_operators() -> None:
    itl = quantile("inter_token_latency_seconds")
    assert finds_in("threshold-above-buckets", f"{itl} * 1000 > 90000")
    assert not finds_in("threshold-above-buckets", f"{itl} * 1000 > 2000")
    assert finds_in("threshold-above-buckets", f"100 < {itl}")
    assert not finds_in("threshold-above-buckets", f"{itl} < 100")
    assert not finds_in("threshold-above-buckets", f"{itl} >= 80"), "the largest bound itself is reached"


def test_buckets_that_nobody_knows_are_left_alone() -> None:
    assert not finds_in(
        "threshold-above-buckets", "histogram_quantile(0.9, rate(other_seconds_bucket[5m])) > 1e9"
    )
