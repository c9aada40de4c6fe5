"""What holds of every board that is shipped, of the files they make, and of the rules they are held against."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from alerts.catalogue import RECORDINGS
from alerts.pack_settings import PackSettings
from alerts.thresholds import Thresholds
from dashboards.catalogue import BOARDS, boards
from dashboards.command import SHIPPED, dashboards
from dashboards.context import WORKER_UID
from dashboards.lint import findings
from dashboards.lint.board_rules import BOARD_RULES
from dashboards.lint.finding import panels_of
from dashboards.lint.panel_rules import PANEL_RULES
from dashboards.normalise import SCHEMA_VERSION, normalise
from dashboards.provisioning import FOLDER_PATH, SCRAPE_INTERVAL, files
from dashboards.shape import Unit
from exporter.catalogue import SIGNALS
from exporter.signal import PEAK_SUFFIX

ROOT = Path(__file__).resolve().parents[2]
PLAIN = PackSettings()
MOVED = PackSettings(
    cluster_labels=("region", "cluster"),
    selector='job="thrashold"',
    runbooks="https://wiki.example/runbooks/",
    thresholds=replace(Thresholds(), kv_usage_full_ratio=0.97),
)
JSON = {name: board.to_json() for name, board in boards(PLAIN).items()}
EVERY = pytest.mark.parametrize("name", BOARDS)
_RECORDINGS = {recording.name for group in RECORDINGS.values() for recording in group.recordings}
_RECORDED = re.compile(r"[a-z_]+:thrashold_[a-z0-9_]+:[a-z0-9_]+")
_NAMES = {signal.full_name for signal in SIGNALS} | {
    signal.full_name + PEAK_SUFFIX for signal in SIGNALS if signal.peak
}


def _texts(board: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in panels_of(board) for target in panel["targets"]]


def test_what_is_committed_is_what_is_rendered() -> None:
    told = {
        str(path.relative_to(ROOT / SHIPPED)): path.read_text(encoding="utf-8")
        for path in (ROOT / SHIPPED).rglob("*")
        if path.is_file()
    }
    assert told == files(PLAIN), "run `thrashold dashboards render`"


@EVERY
def test_nothing_is_found_in_it(name: str) -> None:
    assert findings(JSON[name]) == []


@EVERY
def test_its_metrics_are_signals_and_each_is_explained(name: str) -> None:
    for panel in panels_of(JSON[name]):
        for target in panel["targets"]:
            recorded = set(_RECORDED.findall(target["expr"]))
            assert recorded <= _RECORDINGS
            names = set(re.findall(r"thrashold_[a-z0-9_]+", _RECORDED.sub("", target["expr"])))
            assert names <= _NAMES
            told = {each.removesuffix(PEAK_SUFFIX) for each in names}
            assert all(f"`{each}`" in panel["description"] for each in told), panel["title"]
            assert not recorded or re.search(r"`thrashold_\w+`", panel["description"]), panel["title"]
        assert "**What to do:**" in panel["description"]


@EVERY
def test_runbooks_that_it_names_are_there(name: str) -> None:
    for page in set(re.findall(r"docs/[\w/.-]+\.md", json.dumps(JSON[name]))):
        assert (ROOT / page).is_file(), page


@EVERY
def test_settings_of_the_pack_are_the_boards_too(name: str) -> None:
    board = boards(MOVED)[name].to_json()
    for text in _texts(board):
        for selector in re.findall(r"thrashold_[a-z0-9_]+\{([^}]*)\}", text):
            assert selector.startswith('job="thrashold",region=~"$region",cluster=~"$cluster"')
        for selector in re.findall(rf"{_RECORDED.pattern}\{{([^}}]*)\}}", text):
            assert selector.startswith('region=~"$region",cluster=~"$cluster"')
        for grouping in re.findall(r"\b(?:by|on) \(([^)]*)\)", text):
            assert grouping.startswith("region, cluster")
    assert "docs/runbooks/" not in json.dumps(board)
    names = [each["name"] for each in board["templating"]["list"]]
    assert names[:3] == ["datasource", "region", "cluster"]


def test_lines_are_the_thresholds_of_the_alerts() -> None:
    def lines(settings: PackSettings) -> list[float]:
        board = boards(settings)["incident"].to_json()
        panel = next(each for each in panels_of(board) if each["title"] == "KV cache in use")
        return [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]]

    assert lines(PLAIN) == [0.8, 0.9]
    assert lines(MOVED) == [0.8, 0.97]


def test_boards_find_one_another_and_keep_what_is_picked() -> None:
    assert {board["uid"] for board in JSON.values()} == {f"thrashold-{name}" for name in BOARDS}
    for board in JSON.values():
        (link,) = board["links"]
        assert link["includeVars"]
        assert link["keepTime"]
        assert set(link["tags"]) & set(board["tags"])
    for name in ("fleet", "incident"):
        urls = re.findall(r"/d/[^\"]+", json.dumps(JSON[name]))
        assert urls
        assert all(url.startswith(f"/d/{WORKER_UID}?${{datasource:queryparam}}&var-cluster=") for url in urls)
        assert all("var-engine=" in url and "${__url_time_range}" in url for url in urls)


def test_the_incident_needs_no_panel_that_only_grafana_draws() -> None:
    kinds = {panel["type"] for panel in panels_of(JSON["incident"])}
    assert kinds <= {"stat", "timeseries", "table"}


def test_the_incident_has_each_link_as_a_number_beside_its_past() -> None:
    panels = [panel for panel in panels_of(JSON["incident"]) if panel["type"] != "table"]
    for now, then in zip(panels[::2], panels[1::2], strict=True):
        assert (now["type"], then["type"]) == ("stat", "timeseries")
        assert now["gridPos"]["y"] == then["gridPos"]["y"]
        assert now["title"].endswith(then["title"])


def test_units_are_known_to_grafana() -> None:
    units = {unit.value for unit in Unit}
    for board in JSON.values():
        assert {panel["fieldConfig"]["defaults"]["unit"] for panel in panels_of(board)} <= units


def test_what_is_normal_stays_as_it_is() -> None:
    for board in JSON.values():
        assert normalise(board) == board
        assert board["schemaVersion"] == SCHEMA_VERSION


def test_provisioning_fits_the_boards() -> None:
    made = files(PLAIN)
    (source,) = yaml.safe_load(made["provisioning/datasources/prometheus.yml"])["datasources"]
    assert source["jsonData"]["timeInterval"] == SCRAPE_INTERVAL
    (provider,) = yaml.safe_load(made["provisioning/dashboards/thrashold.yml"])["providers"]
    assert provider["options"]["path"] == FOLDER_PATH
    for name, board in JSON.items():
        (text,) = yaml.safe_load(made[f"kubernetes/{name}.configmap.yml"])["data"].values()
        assert json.loads(text) == board
        assert len(text) < 1_000_000, "a ConfigMap holds 1 MiB"


def _spoilt(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    board = copy.deepcopy(JSON["sidecar"])
    for key, value in changes.items():
        if value is None:
            board.pop(key, None)
        else:
            board[key] = value
    return board


def _spoilt_panel(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    board = copy.deepcopy(JSON["sidecar"])
    panel = next(iter(panels_of(board)))
    panel.update(changes)
    return board


def _with_variable(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    board = copy.deepcopy(JSON["sidecar"])
    board["templating"]["list"][-1].update(changes)
    return board


BROKEN = {
    "template-datasource-rule": _with_variable(type="datasource"),
    "template-on-time-change-reload-rule": _with_variable(refresh=1),
    "uneditable-dashboard": _spoilt(editable=True),
    "stable-identity": _spoilt(uid=None),
    "no-inputs": _spoilt(__inputs=[]),
    "modern-schema": _spoilt(schemaVersion=12),
    "unique-panel-ids": _spoilt_panel(id=5),
    "panels-apart": _spoilt_panel(gridPos={"h": 40, "w": 24, "x": 0, "y": 1}),
    "panel-datasource-rule": _spoilt_panel(datasource="Prometheus"),
    "panel-title-description-rule": _spoilt_panel(description=""),
    "panel-units-rule": _spoilt_panel(fieldConfig={"defaults": {"noValue": "none"}}),
    "panel-says-nothing": _spoilt_panel(fieldConfig={"defaults": {"unit": "s"}}),
    "panel-no-targets-rule": _spoilt_panel(targets=[]),
    "target-rate-interval-rule": _spoilt_panel(
        targets=[{"expr": "rate(x[5m])", "refId": "A", "datasource": {"uid": "${datasource}"}}]
    ),
    "panel-kind": _spoilt_panel(type="graph"),
    "panel-max-data-points": _spoilt_panel(maxDataPoints=100),
}


def test_every_rule_is_tried() -> None:
    assert set(BROKEN) == {*BOARD_RULES, *PANEL_RULES}


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_finds_what_it_is_for(rule: str) -> None:
    assert {finding.rule for finding in findings(BROKEN[rule])} == {rule}


def test_the_command_tells_stale_files_and_bad_boards(tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(dashboards, ["render", "-o", str(tmp_path)]).exit_code == 0
    assert runner.invoke(dashboards, ["render", "-o", str(tmp_path), "--check"]).exit_code == 0
    fleet = tmp_path / "dashboards" / "fleet.json"
    assert runner.invoke(dashboards, ["lint", str(fleet)]).exit_code == 0
    fleet.write_text(json.dumps(BROKEN["no-inputs"]))
    stale = runner.invoke(dashboards, ["render", "-o", str(tmp_path), "--check"])
    assert stale.exit_code == 1
    assert "fleet.json" in stale.output
    found = runner.invoke(dashboards, ["lint", str(fleet)])
    assert found.exit_code == 1
    assert "[no-inputs]" in found.output
    fleet.write_text("{")
    assert runner.invoke(dashboards, ["lint", str(fleet)]).exit_code == 2
    fleet.write_text("{}")
    assert runner.invoke(dashboards, ["lint", str(fleet)]).exit_code == 2
    settings = tmp_path / "pack.yml"
    settings.write_text("thresholds: {kv_usage_full_ratio: 3}\n")
    refused = runner.invoke(dashboards, ["render", "--config", str(settings), "-o", str(tmp_path)])
    assert refused.exit_code == 2
