"""averaged-average: means put together."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import finds_in

MEAN = "rate(x_sum[5m]) / rate(x_count[5m])"
QUANTILE = "histogram_quantile(0.9, sum by (le, pod) (rate(x_bucket[5m])))"


@pytest.mark.parametrize(
    "expr",
    [
        f"avg({MEAN}) > 1",
        f"avg({MEAN} * 1000) > 1",
        f"sum by (pod) ({MEAN}) > 1",
        f"avg by (a) ({QUANTILE}) > 1",
        f"sum({QUANTILE}) > 1",
        "avg(avg by (pod) (x)) > 1",
    ],
)
def test_means_of_means_are_told(expr: str) -> None:
    assert len(finds_in("averaged-average", expr)) == 1


@pytest.mark.parametrize(
    "expr",
    [
        f"{MEAN} > 1",
        f"max({MEAN}) > 1",
        f"quantile(0.95, {MEAN}) > 1",
        "avg(x) > 1",
        "avg(sum by (pod) (x)) > 1",
        "sum(avg by (pod) (x)) > 1",
        f"max({QUANTILE}) > 1",
        "sum(rate(x_sum[5m])) / sum(rate(x_count[5m])) > 1",
    ],
)
def test_others_are_not(expr: str) -> None:
    assert not finds_in("averaged-average", expr)
