"""peak-for: how long a peak is waited for."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import alert, board, finds, rules

PEAK = "thrashold_kv_usage_ratio_peak > 0.9"


@pytest.mark.parametrize(("wait", "count"), [("0s", 1), ("30s", 1), ("119s", 1), ("2m", 0), ("1h", 0)])
def test_two_minutes_are_enough(wait: str, count: int) -> None:
    assert len(finds("peak-for", rules(alert(PEAK, **{"for": wait})))) == count


def test_without_a_for_it_is_told_and_elsewhere_it_is_not() -> None:
    assert finds("peak-for", rules(alert(PEAK)))
    assert not finds("peak-for", rules({"record": "a:b", "expr": PEAK}))
    assert not finds("peak-for", board(PEAK))
    assert not finds("peak-for", rules(alert("other_peak > 1")))
