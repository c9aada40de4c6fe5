"""xid-above-zero: the gauge that holds the last XID."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import board, finds, finds_in


@pytest.mark.parametrize(
    "expr",
    [
        "DCGM_FI_DEV_XID_ERRORS > 0",
        "DCGM_FI_DEV_XID_ERRORS != 0",
        "max by (gpu) (DCGM_FI_DEV_XID_ERRORS) >= 1",
        "0 < DCGM_FI_DEV_XID_ERRORS",
    ],
)
def test_any_xid_is_told(expr: str) -> None:
    assert len(finds_in("xid-above-zero", expr)) == 1


@pytest.mark.parametrize(
    "expr",
    [
        "DCGM_FI_DEV_XID_ERRORS == 79",
        "changes(DCGM_FI_DEV_XID_ERRORS[15m]) > 0",
        "DCGM_FI_DEV_XID_ERRORS > 40",
        "DCGM_FI_DEV_GPU_TEMP > 0",
    ],
)
def test_a_certain_xid_and_a_change_are_not(expr: str) -> None:
    assert not finds_in("xid-above-zero", expr)


def test_a_board_may_show_it() -> None:
    assert not finds("xid-above-zero", board("DCGM_FI_DEV_XID_ERRORS > 0"))
