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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


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
    def lines(pack: PackSettings) -> list[float]:
        board = boards(pack)["incident"].to_json()
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


def test_states_are_told_as_lines_too() -> None:
    """Lanes can't be drawn outside Grafana: another panel has the same queries."""
    lanes = [
        panel for board in JSON.values() for panel in panels_of(board) if panel["type"] == "state-timeline"
    ]
    assert lanes
    drawn = [
        [target["expr"] for target in panel["targets"]]
        for board in JSON.values()
        for panel in panels_of(board)
        if panel["type"] == "timeseries"
    ]
    assert all([target["expr"] for target in lane["targets"]] in drawn for lane in lanes)


def test_a_number_is_of_now_however_far_one_zooms_out() -> None:
    """Grafana's windows grow with the time that is shown: of 30 days, to an hour."""
    pack = replace(PLAIN, lookback="2m")
    asked = [
        target
        for board in boards(pack).values()
        for panel in panels_of(board.to_json())
        for target in panel["targets"]
    ]
    for target in asked:
        assert ("$__" in target["expr"]) <= target["range"], target["expr"]
    assert any("[2m]" in target["expr"] for target in asked if target["instant"])


def test_what_is_recorded_is_asked_for_no_more_often_than_it_is_there() -> None:
    """Two values in each window, also where a Prometheus scrapes each second and Grafana knows of it."""
    every = {each.name: group.every_seconds for group in RECORDINGS.values() for each in group.recordings}
    seen = 0
    for board in JSON.values():
        for panel in panels_of(board):
            names = {name for target in panel["targets"] for name in _RECORDED.findall(target["expr"])}
            for name in names:
                seen += 1
                assert 60 * int(panel["interval"].removesuffix("m")) >= 2 * (every[name] or 60), panel[
                    "title"
                ]
    assert seen


def test_one_engine_is_of_one_cluster() -> None:
    """Two clusters may have engines of one name: their numbers would stand in one panel, both as that engine's."""
    picked = {each["name"]: each for each in JSON["worker"]["templating"]["list"]}
    assert not picked["cluster"]["includeAll"]
    assert not picked["cluster"]["multi"]
    assert not picked["engine"]["multi"]


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


@pytest.mark.parametrize(
    "kind", ["barchart", "geomap", "histogram", "logs", "nodeGraph", "piechart", "xychart"]
)
def test_each_kind_that_grafana_ships_is_its_own(kind: str) -> None:
    assert findings(_spoilt_panel(type=kind)) == []


@pytest.mark.parametrize("kind", ["alertlist", "annolist", "dashlist", "news", "text"])
def test_what_asks_no_data_source_needs_none(kind: str) -> None:
    board = _spoilt_panel(type=kind, targets=None, datasource=None, fieldConfig={})
    assert findings(board) == []


@pytest.mark.parametrize("name", BOARDS)
def test_rules_find_nothing_but_faults_in_boards_of_others(name: str) -> None:
    """Whatever stands in the place of anything: it is found, or it is no matter; nothing breaks."""

    @given(st.data())
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def changed(data: st.DataObject) -> None:
        board = copy.deepcopy(JSON[name])
        inside: Any = board
        for _ in range(data.draw(st.integers(0, 6))):
            keys = sorted(inside) if isinstance(inside, dict) else range(len(inside))
            nested = [key for key in keys if isinstance(inside[key], dict | list) and inside[key]]
            if not nested:
                break
            inside = inside[data.draw(st.sampled_from(nested))]
        key = data.draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))))
        inside[key] = data.draw(_ANYTHING)
        assert isinstance(findings(board), list)

    changed()


OTHERS = {
    "[1]": "1:1: is no board of Grafana, which is an object with panels",
    "{}": "1:1: is no board of Grafana: it has no panels",
    '{"rows": []}': "1:1: is a board of before Grafana 5",
    '{\n  "panels": [,]}': "2:14: is no JSON",
    "a: b": "1:1: is no JSON",
}


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_board_is_told_with_its_place(text: str, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(text)
    told = CliRunner().invoke(dashboards, ["lint", str(tmp_path / "other.json")])
    assert told.exit_code == 2
    assert f"other.json:{OTHERS[text]}" in told.output


def test_a_folder_is_looked_through_and_one_bad_file_costs_itself(tmp_path: Path) -> None:
    runner = CliRunner()
    empty = runner.invoke(dashboards, ["lint", str(tmp_path)])
    assert (empty.exit_code, "a folder without a board" in empty.output) == (2, True)
    (tmp_path / "wrapped.json").write_text(json.dumps({"dashboard": BROKEN["panel-units-rule"]}, indent=1))
    (tmp_path / "worse.json").write_text("{")
    both = runner.invoke(dashboards, ["lint", str(tmp_path)])
    assert both.exit_code == 2
    assert "worse.json:1:2: is no JSON" in both.output
    title = next(iter(panels_of(JSON["sidecar"])))["title"]
    assert f'warning: panel-units-rule (panel "{title}")' in both.output
    (tmp_path / "worse.json").unlink()
    line = next(
        int(told.split(":")[1])
        for told in runner.invoke(dashboards, ["lint", str(tmp_path)]).output.splitlines()
        if "wrapped.json:" in told
    )
    assert (tmp_path / "wrapped.json").read_text().splitlines()[line - 1].strip() == "{"
    assert runner.invoke(dashboards, ["lint", str(tmp_path / "gone.json")]).exit_code == 2


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
    assert "warning: no-inputs" in found.output
    fleet.write_text("{")
    assert runner.invoke(dashboards, ["lint", str(fleet)]).exit_code == 2
    fleet.write_text("{}")
    assert runner.invoke(dashboards, ["lint", str(fleet)]).exit_code == 2
    pack = tmp_path / "pack.yml"
    pack.write_text("thresholds: {kv_usage_full_ratio: 3}\n")
    refused = runner.invoke(dashboards, ["render", "--config", str(pack), "-o", str(tmp_path)])
    assert refused.exit_code == 2
