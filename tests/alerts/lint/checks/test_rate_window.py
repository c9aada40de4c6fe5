"""rate-window: windows and scrapes."""

from __future__ import annotations

import pytest

from alerts.lint.settings import LintSettings
from tests.alerts.lint.linting import board, finds, finds_in


@pytest.mark.parametrize(
    ("window", "scrape", "count"),
    [
        ("30s", 15, 1),
        ("59s", 15, 1),
        ("1m", 15, 0),
        ("1m", 30, 1),
        ("2m", 30, 0),
        ("5m", 60, 0),
        ("3s", 1, 1),
        ("4s", 1, 0),
    ],
)
def test_four_scrapes_are_enough(window: str, scrape: float, count: int) -> None:
    settings = LintSettings(scrape_interval_seconds=scrape)
    assert len(finds_in("rate-window", f"rate(x[{window}]) > 0", settings)) == count


@pytest.mark.parametrize("call", ["irate(x[30s])", "increase(x[30s])", "deriv(x[30s])", "delta(x[30s])"])
def test_whatever_compares_scrapes_needs_them(call: str) -> None:
    assert len(finds_in("rate-window", f"{call} > 0")) == 1


@pytest.mark.parametrize(
    "call", ["last_over_time(x[30s])", "max_over_time(x[30s])", "rate(x[5m])", "absent(x)"]
)
def test_whatever_takes_one_does_not(call: str) -> None:
    assert not finds_in("rate-window", f"{call} > 0")


@pytest.mark.parametrize(
    ("window", "fix"),
    [
        ("$__interval", "write [$__rate_interval]"),
        ("${__interval}", "write [$__rate_interval]"),
        ("$__rate_interval", ""),
        ("$window", ""),
        ("${window}", ""),
        ("5m", ""),
        ("30s", "take 60s or more, or [$__rate_interval]"),
    ],
)
def test_boards_have_variables(window: str, fix: str) -> None:
    found = finds("rate-window", board(f"rate(x[{window}])"))
    assert [each.fix for each in found] == ([fix] if fix else [])


def test_one_scrape_is_told_in_the_singular() -> None:
    (found,) = finds_in("rate-window", "rate(x[20s]) > 0")
    assert "holds 1 scrape of 15 s" in found.what
