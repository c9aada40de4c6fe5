"""quantile-without-le: whether the bounds reach histogram_quantile."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import finds_in


@pytest.mark.parametrize(
    ("buckets", "count"),
    [
        ("sum(rate(x_bucket[5m]))", 1),
        ("sum by (pod) (rate(x_bucket[5m]))", 1),
        ("sum without (le) (rate(x_bucket[5m]))", 1),
        ("sum by (le) (sum by (pod) (rate(x_bucket[5m])))", 1),
        ("sum by (le) (rate(x_bucket[5m]))", 0),
        ("sum by (pod, le) (rate(x_bucket[5m])) * on (pod) group_left () y", 0),
        ("sum without (instance) (rate(x_bucket[5m]))", 0),
        ("rate(x_bucket[5m])", 0),
        ("sum by (pod) (rate(x[5m]))", 0),
        ("label_replace(sum(rate(x_bucket[5m])), 'le', '1', '', '')", 0),
    ],
)
def test_le_has_to_be_there(buckets: str, count: int) -> None:
    assert len(finds_in("quantile-without-le", f"histogram_quantile(0.9, {buckets}) > 1")) == count
