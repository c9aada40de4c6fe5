"""le-equality: bounds as they are stored."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import finds_in


@pytest.mark.parametrize(
    ("matcher", "fix"),
    [
        ('le="1"', 'le=~"1([.]0)?"'),
        ('le=~"1|5"', 'le=~"1([.]0)?|5([.]0)?"'),
        ('quantile="1"', 'quantile=~"1([.]0)?"'),
        ('le="0.5"', ""),
        ('le="+Inf"', ""),
        ('le="1.0"', ""),
        ('le=~"1([.]0)?"', ""),
        ('le!="1"', ""),
        ('level="1"', ""),
    ],
)
def test_whole_bounds_are_told(matcher: str, fix: str) -> None:
    found = finds_in("le-equality", f"sum(rate(x_bucket{{{matcher}}}[5m])) > 1")
    assert [each.fix for each in found] == ([fix] if fix else [])
