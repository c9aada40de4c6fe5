"""absent-across-clusters: absence where several clusters are."""

from __future__ import annotations

import pytest

from alerts.lint.settings import LintSettings
from tests.alerts.lint.linting import board, finds, finds_in

SEVERAL = LintSettings(several_clusters=True)


@pytest.mark.parametrize(
    ("expr", "count"),
    [
        ('absent(up{job="vllm"})', 1),
        ('absent(up{job="vllm"} == 1)', 1),
        ("absent_over_time(up[5m])", 1),
        ('absent(up{cluster="east"})', 0),
        ('absent(up{cluster=~"east"})', 1),
        ("up == 0", 0),
    ],
)
def test_absence_of_any_cluster(expr: str, count: int) -> None:
    assert len(finds_in("absent-across-clusters", expr, SEVERAL)) == count
    assert not finds_in("absent-across-clusters", 'absent(up{job="vllm"})')


def test_a_board_may_show_it() -> None:
    assert not finds("absent-across-clusters", board("absent(up)"), SEVERAL)
