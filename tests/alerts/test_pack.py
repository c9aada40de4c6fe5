"""What holds of every alert that is shipped, and of the files that they make."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from click.testing import CliRunner

from alerts.alert import Alert, Expression, Severity
from alerts.catalogue import ALERTS, RECORDINGS
from alerts.causes import Cause
from alerts.command import RENDERED, SHIPPED, alerts
from alerts.conditions import leaves, readings
from alerts.explain import explained, thresholds_of
from alerts.pack_settings import PackSettings
from alerts.reference import reference
from alerts.render import rule
from alerts.thresholds import NAMES, THRESHOLDS
from drill.scenarios.catalogue import SCENARIOS
from exporter.signal import PEAK_SUFFIX, PREFIX
from tests.support.prometheus import tool

ROOT = Path(__file__).resolve().parents[2]
EVERY = pytest.mark.parametrize("alert", ALERTS.values(), ids=list(ALERTS))
PLAIN, MOVED = PackSettings(), PackSettings(cluster_labels=("region", "cluster"), selector='job="thrashold"')
_NAME = re.compile(rf"{PREFIX}[a-z0-9_]+")
_PEAK_FOR_SECONDS = 120


def test_what_is_committed_is_what_is_rendered() -> None:
    for name, write in RENDERED.items():
        told = (ROOT / SHIPPED / name).read_text(encoding="utf-8")
        assert told == write(PLAIN), "run `thrashold alerts render`"


def test_promtool_takes_the_rules_and_finds_nothing_to_say(tmp_path: Path) -> None:
    for settings in (PLAIN, MOVED):
        file = tmp_path / "rules.yml"
        file.write_text(RENDERED["thrashold.rules.yml"](settings))
        checked = subprocess.run(
            [tool("promtool"), "check", "rules", "--lint=all", "--lint-fatal", file],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert checked.returncode == 0, checked.stderr
        recorded = sum(len(group.recordings) for group in RECORDINGS.values())
        assert f"{len(ALERTS) + recorded} rules found" in checked.stdout


@EVERY
def test_the_grammar_of_prometheus_3_takes_it_too(alert: Alert) -> None:
    promql_parser.parse(alert.promql(MOVED.rendering))


@EVERY
def test_every_grouping_and_every_join_keeps_the_clusters_labels(alert: Alert) -> None:
    for recorded in (True, False):
        text = alert.promql(replace(MOVED.rendering, recorded=recorded))
        groupings = re.findall(r"\b(?:by|on) \(([^)]*)\)", text)
        assert all(group.startswith("region, cluster") for group in groupings), groupings
        # one that is recorded and only compared keeps the labels that its recording has
        assert groupings or alert.name == "Watchdog" or (recorded and ":" in text)
        assert "absent(" not in text


@EVERY
def test_every_selector_has_the_matchers_that_were_set(alert: Alert) -> None:
    for selector in re.findall(rf"(?<!:){_NAME.pattern}(\{{[^}}]*\}})?", alert.promql(MOVED.rendering)):
        assert 'job="thrashold"' in selector


@EVERY
def test_its_templates_use_labels_that_it_has(alert: Alert) -> None:
    used = set(re.findall(r"\$labels\.([a-z_]+)", alert.summary + alert.meaning))
    assert used <= set(alert.labels)


@EVERY
def test_what_quiets_it_exists_and_does_not_wait_for_it_in_turn(alert: Alert) -> None:
    explained = (*alert.quiet_under, *alert.consequence_of)
    assert alert.name not in explained
    assert len(set(explained)) == len(explained)
    for name in explained:
        assert alert.name not in (*ALERTS[name].quiet_under, *ALERTS[name].consequence_of)


@EVERY
def test_a_peak_is_never_waited_for_less_than_twice_its_window(alert: Alert) -> None:
    """The maximum of a minute stays for a minute: a shorter ``for`` would fire on one instant."""
    peaks = not isinstance(alert.condition, Expression) and any(
        reading.peak for reading in readings(alert.condition)
    )
    assert (
        not peaks
        or PEAK_SUFFIX not in alert.promql(PLAIN.rendering)
        or alert.for_seconds >= _PEAK_FOR_SECONDS
    )


def test_causes_alone_never_wake_anybody() -> None:
    """What pages is pain: users wait, an engine or a GPU is gone, work is thrown away."""
    pages = {alert.name for alert in ALERTS.values() if alert.severity is Severity.PAGE}
    assert pages.isdisjoint(
        {
            "KvCachePressure",
            "KvDemandBeyondPool",
            "KvExhaustionNear",
            "PcieSaturatedBySwap",
            "PcieSaturatedByOthers",
            "PcieLinkDowngraded",
            "TailWaste",
            "LongPromptsOverQuota",
        }
    )


NO_SCENARIO = {
    Cause.SLO_MISSED: "what users feel of many causes",
    Cause.ENGINE_DOWN: "gpu-lost has it",
    Cause.NOT_WATCHED: "the drill's sidecar is always there",
}


def test_every_cause_has_an_alert_and_a_scenario_or_a_reason() -> None:
    alerted = {alert.cause for alert in ALERTS.values()}
    drilled = {scenario.cause for scenario in SCENARIOS.values()}
    for cause in Cause:
        assert cause in alerted, cause
        assert (cause in drilled) != (cause in NO_SCENARIO), cause


def test_a_rule_carries_what_a_pager_needs() -> None:
    made = rule(ALERTS["KvSequencesSwapped"], PackSettings(runbooks="https://runbooks.example/thrashold/"))
    assert made["for"] == "15s"
    assert made["keep_firing_for"] == "900s"
    assert made["labels"] == {"severity": "page", "cause": "swap-thrash"}
    assert made["annotations"]["runbook_url"] == "https://runbooks.example/thrashold/KvSequencesSwapped.md"


def invoked(*arguments: str) -> Any:  # noqa: ANN401 -- click's own
    return CliRunner().invoke(alerts, list(arguments))


def test_settings_change_thresholds_severities_and_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "pack.yml"
    file.write_text(
        "thresholds: {kv_usage_full_ratio: 0.95}\n"
        "alerts:\n"
        "  KvCachePressure: {severity: page, for_seconds: 300, keep_firing_seconds: 0}\n"
        "  Watchdog: {disabled: true}\n"
    )
    assert invoked("render", "--config", str(file), "-o", str(tmp_path)).exit_code == 0
    read = yaml.safe_load((tmp_path / "thrashold.rules.yml").read_text())
    rules = {rule["alert"]: rule for group in read["groups"] for rule in group["rules"] if "alert" in rule}
    pressure = rules["KvCachePressure"]
    assert (pressure["for"], pressure["labels"]["severity"]) == ("300s", "page")
    assert "keep_firing_for" not in pressure
    assert ">= 0.95" in pressure["expr"]
    assert set(ALERTS) - set(rules) == {"Watchdog"}
    operator = yaml.safe_load((tmp_path / "thrashold.prometheusrule.yml").read_text())
    assert operator["spec"]["groups"] == read["groups"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            "thresholds: {kv_usage_full_ratio: 90}",
            "1: thresholds.kv_usage_full_ratio: expected a number <= 1.0",
        ),
        ("thresholds:\n  kv_usge: 1", "2: thresholds.kv_usge: unknown key"),
        (
            "alerts: {KvTrashing: {disabled: true}}",
            "alerts.KvTrashing: there is no alert KvTrashing: did you mean KvThrashing?",
        ),
        (
            "alerts: {KvThrashing: {severity: loud}}",
            "1: alerts.KvThrashing.severity: 'loud' is not page, warning or info",
        ),
        (
            "alerts: {KvThrashing: {sevrity: page}}",
            "1: alerts.KvThrashing.sevrity: unknown key; did you mean severity?",
        ),
        ("thresholds: {kv_usage_calm_ratio: 0.95}", "0.95 is not below kv_usage_full_ratio (0.9)"),
        ("cluster_labels: [a-b]", "cluster_labels"),
        ("lookback: 1 minute", "lookback"),
        ("lookback: 0s", "lookback"),
        ("selector: job=thrashold", "selector"),
        ("selector: '{job=\"thrashold\"}'", "selector"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_key_and_line(
    settings: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "pack.yml"
    file.write_text(settings)
    result = invoked("render", "--config", str(file), "-o", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert words in result.output
    assert str(file) in result.output
    assert not (tmp_path / "out").exists()


def test_check_tells_what_is_stale(tmp_path: Path) -> None:
    invoked("render", "-o", str(tmp_path))
    assert invoked("render", "-o", str(tmp_path), "--check").exit_code == 0
    stale = tmp_path / "thrashold.rules.yml"
    stale.write_text("groups: []\n")
    result = invoked("render", "-o", str(tmp_path), "--check")
    assert result.exit_code == 1
    assert str(stale) in result.output
    assert stale.read_text() == "groups: []\n"


def test_an_alert_explains_itself() -> None:
    result = invoked("explain", "KvThrashing")
    assert result.exit_code == 0
    for words in (
        "(page)",
        "recompute-thrash",
        "after 15s",
        "docs/runbooks/KvThrashing.md",
        "thrashold_thrashing",
    ):
        assert words in result.output
    missing = invoked("explain", "KvNothing")
    assert (missing.exit_code, "no alert KvNothing" in missing.output) == (2, True)
    assert "did you mean KvPingPong?" in invoked("explain", "kvpingpog").output
    assert "`thrashold alerts list` names them all" in invoked("explain", "nothing").output
    assert set(ALERTS) == {line.split()[1] for line in invoked("list").output.splitlines()}


@pytest.mark.parametrize("name", ALERTS)
def test_what_explains_an_alert_fits_a_terminal_but_for_its_expression(name: str) -> None:
    words, _, _ = explained(ALERTS[name], PackSettings()).partition("\n\n    ")
    assert max(map(len, words.splitlines())) <= 80


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_explains_each_number_that_its_condition_is_set_by(name: str) -> None:
    alert = ALERTS[name]
    said = " ".join(explained(alert, PackSettings()).split())
    if not isinstance(alert.condition, Expression):
        limits = [leaf.limit for leaf in leaves(alert.condition)]
        assert set(thresholds_of(alert)) == {limit for limit in limits if isinstance(limit, str)}
    for key in thresholds_of(alert):
        assert f"thresholds.{key}: {getattr(THRESHOLDS, key):g} (may be " in said
    assert f"alerts.{name}: severity, for_seconds" in said


def test_every_threshold_is_explained_with_some_alert() -> None:
    assert {key for alert in ALERTS.values() for key in thresholds_of(alert)} == NAMES


def test_what_is_set_is_explained_as_set(tmp_path: Path) -> None:
    config = tmp_path / "pack.yml"
    config.write_text("thresholds: {kv_usage_full_ratio: 0.95}\n")
    said = " ".join(invoked("explain", "KvCachePressure", "--config", str(config)).output.split())
    assert "compares thrashold_kv_usage_ratio >= kv_usage_full_ratio and thrashold_sequences{" in said
    assert "thresholds.kv_usage_full_ratio: 0.95 (may be above 0 to 1, shipped as 0.9)" in said
    assert "The incident's runbook draws the line at 90 %" in said
    assert "thresholds.waiting_sequences: 5 (may be 0 to 1e+09)" in said


def test_the_committed_page_is_fresh() -> None:
    assert (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8") == reference(), "run `make docs`"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_threshold_changes_a_rule_when_it_is_changed(name: str) -> None:
    moved = replace(PLAIN, thresholds=replace(THRESHOLDS, **{name: getattr(THRESHOLDS, name) + 0.015625}))
    assert RENDERED["thrashold.rules.yml"](moved) != RENDERED["thrashold.rules.yml"](PLAIN)


def test_whoever_renders_is_told_that_runbooks_are_only_a_path_unless_that_is_set(tmp_path: Path) -> None:
    told = CliRunner().invoke(alerts, ["render", "-o", str(tmp_path)])
    assert "runbook_url is a path (docs/runbooks/NAME.md)" in told.stderr
    config = tmp_path / "pack.yml"
    config.write_text("runbooks: https://runbooks.example/thrashold\n")
    told = CliRunner().invoke(alerts, ["render", "-o", str(tmp_path), "--config", str(config)])
    assert told.exit_code == 0
    assert "runbook_url" not in told.stderr
