"""promql-release: what which Prometheus refuses; promtool of 2.42 agrees."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from alerts.lint.facts.prometheus import FUNCTIONS
from alerts.lint.settings import LintSettings
from tests.alerts.lint.linting import alert, finds, finds_in, rules
from tests.support.prometheus import tool

NEWER = [
    "mad_over_time(x[5m]) > 1",
    'sort_by_label(x, "a") > 1',
    "histogram_avg(x) > 1",
    "limitk(2, x) > 1",
    "info(x) > 1",
    "double_exponential_smoothing(x[5m], 0.5, 0.5) > 1",
    "first_over_time(x[5m]) > 1",
    "ts_of_max_over_time(x[5m]) > 1",
    '{"a.b"} > 1',
    "rate(x[5m] anchored) > 1",
    "rate(x[2m*3]) > 1",
    "a + fill(0) b > 1",
]
EVERYWHERE = [
    "x @ end() > 1",
    "x offset -5m > 1",
    "present_over_time(x[5m]) > 1",
    "max_over_time(rate(x[5m])[1h:1m]) > 1",
    "group by (a) (x) > 0",
    "clamp(x, 0, 1) atan2 y > 0",
    'x{a="b, c"} > 1',
    'x{a=~"2[0-9][0-9]"} > 1',
    'label_replace(x, "a", "$1", "b", "^[0-9]+c(.*)$") > 1',
]


@pytest.mark.parametrize("expr", NEWER)
def test_what_2_42_refuses_is_told_and_not_what_the_newest_takes(expr: str) -> None:
    assert len(finds_in("promql-release", expr)) == 1
    assert not finds_in("promql-release", expr, LintSettings(releases={"prometheus": "3.14"}))


@pytest.mark.parametrize("expr", EVERYWHERE)
def test_what_all_of_them_take_is_not(expr: str) -> None:
    assert not finds_in("promql-release", expr)


def test_promtool_2_42_says_the_same(tmp_path: Path) -> None:
    promtool = tool("promtool")
    version = subprocess.run([promtool, "--version"], capture_output=True, text=True, check=True)
    if "version 2.42" not in version.stdout + version.stderr:
        pytest.skip("promtool is another one than Debian 12's")

    def takes(text: str) -> bool:
        file = tmp_path / "rules.yml"
        file.write_text(text)
        run = subprocess.run([promtool, "check", "rules", file], capture_output=True, check=False, timeout=60)
        return run.returncode == 0

    assert takes(rules(*({**alert(expr), "alert": f"A{number}"} for number, expr in enumerate(EVERYWHERE))))
    for expr in NEWER:
        assert not takes(rules(alert(expr))), expr
    for key in ("query_offset", "labels"):
        assert not takes(rules(alert("x > 1"), **{key: "1m" if key == "query_offset" else {"a": "b"}}))
    assert takes(rules(alert("holt_winters(x[5m], 0.5, 0.5) > 1")))


def test_a_release_between_takes_what_had_come() -> None:
    between = LintSettings(releases={"prometheus": "2.51"})
    assert not finds_in("promql-release", "mad_over_time(x[5m]) > 1", between)
    assert finds_in("promql-release", "limitk(2, x) > 1", between)
    assert all(since.release > (2, 42) for since in FUNCTIONS.values())


def test_what_3_removed_is_told_whatever_is_set() -> None:
    (found,) = finds_in(
        "promql-release", "holt_winters(x[5m], 0.5, 0.5) > 1", LintSettings(releases={"prometheus": "3.5"})
    )
    assert "3.0 has no holt_winters" in found.what


def test_keys_of_a_group_are_told_once() -> None:
    text = rules(alert("x > 1"), alert("y > 1"), query_offset="1m", labels={"a": "b"})
    assert len(finds("promql-release", text)) == 2
    assert not finds("promql-release", rules(alert("x > 1"), interval="30s", limit=5))
