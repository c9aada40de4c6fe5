"""What holds of every series that is recorded."""

from __future__ import annotations

import re
from dataclasses import replace

import promql_parser
import pytest
import yaml

from alerts.alert import Alert
from alerts.catalogue import ALERTS, RECORDINGS
from alerts.pack_settings import PackSettings
from alerts.recording import Recording
from alerts.recording_ill import DOWN
from alerts.recording_slo import BASE_WINDOW
from alerts.recording_stuck import KINDS
from alerts.render import recording_group, rule_file

MOVED = PackSettings(cluster_labels=("region", "cluster"), selector='job="thrashold"').rendering
RECORDED = {each.name: each for group in RECORDINGS.values() for each in group.recordings}
EVERY = pytest.mark.parametrize("recording", RECORDED.values(), ids=list(RECORDED))
_RECORDED = re.compile(r"[a-z_]+:thrashold_[a-z0-9_]+:[a-z0-9_]+")
_RAW = re.compile(r"(?<![:a-z_])thrashold_[a-z0-9_]+(\{[^}]*\})?(\[\w+\])?")


def test_names_are_recorded_once() -> None:
    assert len(RECORDED) == sum(len(group.recordings) for group in RECORDINGS.values())


def test_engines_that_are_stuck_are_recorded_by_what_the_alerts_ask_that_are_counted() -> None:
    counted = [ALERTS[name].condition for name in ALERTS["ManyEnginesStuck"].counts]
    assert len(counted) == len(KINDS)
    assert all(each in KINDS for each in counted)


@pytest.mark.parametrize("name", ["thrashold_sequences", "cluster:sequences:sum", "cluster:thrashold_a:b:c"])
def test_a_name_that_says_no_level_or_no_operation_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="take level:metric:operations"):
        Recording(name, "", lambda _: "vector(1)", ())


@EVERY
def test_the_grammar_of_prometheus_3_takes_it(recording: Recording) -> None:
    promql_parser.parse(recording.promql(MOVED))


@EVERY
def test_it_keeps_the_clusters_labels_and_the_selector(recording: Recording) -> None:
    text = recording.promql(MOVED)
    assert all(group.startswith("region, cluster") for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", text))
    assert all('job="thrashold"' in raw[0] for raw in _RAW.finditer(text))
    grouped = re.match(r"\w+ by \(([^)]*)\)", text)
    assert grouped is None or grouped[1].split(", ") == ["region", "cluster", *recording.labels]


@EVERY
def test_what_it_reads_is_recorded_before_it(recording: Recording) -> None:
    names = list(RECORDED)
    before = names[: names.index(recording.name)]
    assert set(_RECORDED.findall(recording.promql(MOVED))) <= set(before)


@EVERY
def test_no_ratio_and_no_quantile_is_summed(recording: Recording) -> None:
    _, metric, operation = recording.name.split(":")
    assert operation != "sum" or not re.search(r"_ratio$|_p\d\d_|_interval_seconds$", metric)
    assert "avg by" not in recording.promql(MOVED)


def test_what_alerts_read_is_recorded() -> None:
    read = {name for alert in ALERTS.values() for name in _RECORDED.findall(alert.promql(MOVED))}
    assert read
    assert read <= RECORDED.keys()


def test_no_rule_about_objectives_reads_workers_over_more_than_minutes() -> None:
    texts = [each.promql(MOVED) for each in RECORDINGS["slo"].recordings]
    texts += [alert.promql(MOVED) for alert in ALERTS.values() if "Burn" in alert.name]
    windows = {found[2] for text in texts for found in _RAW.finditer(text)}
    assert windows == {f"[{BASE_WINDOW}]"}


def test_how_often_a_group_is_recorded_is_its_own() -> None:
    told = {name: recording_group(name, PackSettings()).get("interval") for name in RECORDINGS}
    often = dict.fromkeys(("thrashing", "swapping", "lost", "engines", "stuck", "sidecars"))
    minutely = dict.fromkeys(("slo", "presence", "history", "links"), "60s")
    assert told == {**minutely, **dict.fromkeys(("gpus", "fleet"), "30s"), **often}


def test_what_alerts_share_stands_at_the_head_of_the_group_that_pages_on_it() -> None:
    groups = {
        group["name"]: [rule.get("record", rule.get("alert")) for rule in group["rules"]]
        for group in yaml.safe_load(rule_file(PackSettings()))["groups"]
    }
    for group in RECORDINGS.values():
        names = [each.name for each in group.recordings]
        (home,) = (told for told in groups.values() if names[0] in told)
        assert home[: len(names)] == names
        assert (home == names) == (not group.before)
        assert not group.before or home == groups[f"thrashold-{group.before}"]
    page = groups["thrashold-engine"]
    assert page.index(DOWN.name) < page.index("EngineDown")


@pytest.mark.parametrize("alert", ALERTS.values(), ids=list(ALERTS))
def test_an_alert_that_reads_a_shared_condition_has_it_whole_where_nothing_is_recorded(alert: Alert) -> None:
    """As backtests of a Prometheus that has no recording rules ask it."""
    shared = {each.name for name in ("thrashing", "swapping", "gpus") for each in RECORDINGS[name].recordings}
    plain = alert.promql(replace(MOVED, recorded=False))
    assert not shared & set(_RECORDED.findall(plain))
