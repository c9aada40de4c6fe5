"""lifetime-quantile: buckets without a rate."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import finds_in


@pytest.mark.parametrize(
    ("expr", "count"),
    [
        ("histogram_quantile(0.9, x_bucket) > 1", 1),
        ("histogram_quantile(0.9, sum by (le) (x_bucket)) > 1", 1),
        ("histogram_quantile(0.9, sum by (le) (rate(x_bucket[5m]))) > 1", 0),
        ("histogram_quantile(0.9, sum by (le) (increase(x_bucket[5m]))) > 1", 0),
        ("histogram_quantile(0.9, sum by (le) (x_bucket - x_bucket offset 5m)) > 1", 1),
        ("histogram_quantile(0.9, job:x:rate5m) > 1", 0),
        ("quantile(0.9, x_bucket) > 1", 0),
    ],
)
def test_buckets_as_they_stand_are_told(expr: str, count: int) -> None:
    assert len(finds_in("lifetime-quantile", expr)) == count
