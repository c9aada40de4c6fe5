"""increase-of-newborn: counters that begin with their first event."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import board, finds, finds_in

BORN = "sglang:num_retracted_requests_total"


@pytest.mark.parametrize(
    "expr",
    [
        f"increase({BORN}[5m]) > 0",
        f"increase({BORN}[5m]) >= 1",
        f"sum by (pod) (rate({BORN}[5m])) > 0",
        "increase(trtllm_request_error_total[1h]) > 0",
        "increase(tgi_request_failure[1h]) > 0",
        "increase(thrashold_gpu_xid_errors_total[15m]) > 0",
    ],
)
def test_the_first_event_is_told(expr: str) -> None:
    assert len(finds_in("increase-of-newborn", expr)) == 1


@pytest.mark.parametrize(
    "expr",
    [
        f"rate({BORN}[5m]) > 0.5",
        f"increase({BORN}[5m]) > 10",
        f"increase({BORN}[5m]) == 0",
        "increase(vllm:num_preemptions_total[5m]) > 0",
        f"{BORN} - ({BORN} offset 15m or {BORN} * 0) > 0",
        f"increase({BORN}[15m]) > 0 or ({BORN} unless {BORN} offset 15m)",
    ],
)
def test_a_crowd_of_them_and_what_is_there_from_the_start_are_not(expr: str) -> None:
    assert not finds_in("increase-of-newborn", expr)


def test_a_board_may_show_it() -> None:
    assert not finds("increase-of-newborn", board(f"increase({BORN}[5m]) > 0"))
