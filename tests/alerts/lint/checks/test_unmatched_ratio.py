"""unmatched-ratio: a series over itself."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import finds_in


@pytest.mark.parametrize(
    ("expr", "count"),
    [
        ('rate(x{s="5"}[5m]) / rate(x[5m]) > 0.1', 1),
        ('x{s="5"} / x > 0.1', 1),
        ('rate(x{a="1",s=~"5.."}[5m]) / rate(x{a="1"}[5m]) > 0.1', 1),
        ('sum(rate(x{s="5"}[5m])) / sum(rate(x[5m])) > 0.1', 0),
        ('rate(x{s="5"}[5m]) / ignoring (s) sum without (s) (rate(x[5m])) > 0.1', 0),
        ('rate(x{s="5"}[5m]) / on (pod) rate(x[5m]) > 0.1', 0),
        ('rate(x{s="5"}[5m]) / rate(y[5m]) > 0.1', 0),
        ("rate(x[5m]) / rate(x[5m] offset 1h) > 2", 0),
        ('rate(x{s="5"}[5m]) - rate(x[5m]) > 0', 0),
    ],
)
def test_sides_that_keep_the_label(expr: str, count: int) -> None:
    assert len(finds_in("unmatched-ratio", expr)) == count
