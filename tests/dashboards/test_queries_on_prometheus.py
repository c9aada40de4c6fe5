"""Every query of every board on a real Prometheus that has watched V0, V1, data parallel and SGLang engines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from alerts.pack_settings import PackSettings
from dashboards.catalogue import boards
from dashboards.lint.finding import panels_of
from dashboards.queries import interpolated
from tests.dashboards.past import END, MADE_UP, REAL, SCRAPE, SECONDS, SELECTOR, matched, past, record
from tests.support.prometheus import Prometheus, serving
from tests.support.scraped import Scraped

_MOST_SERIES = 60
"""Of a query, in one cluster of these."""
_LEGEND = re.compile(r"\{\{(\w+)\}\}")
_EVERYTHING = {"cluster": ".*", "engine": ".*", "instance": ".*"}
UNSEEN = {
    ("thrashold_slo_events_total", "ttft"): "no recording has a first token that was late, but the drill has",
    ("thrashold_slo_events_total", "tpot"): "the same",
}
"""Label values that no engine's recording shows, and why they are right all the same."""
QUIET = {
    "sidecar / Sources that don't answer, by sidecar": "all answer here: test_answers.py has one that doesn't"
}
"""Panels that are empty where all is well, and where they are tried instead."""


@dataclass(frozen=True)
class Asked:
    board: str
    panel: str
    target: dict[str, Any]

    @property
    def text(self) -> str:
        return str(self.target["expr"])

    def __str__(self) -> str:
        return f"{self.board} / {self.panel} / {self.target['refId']}"


def _asked() -> Iterator[Asked]:
    for name, board in boards(PackSettings()).items():
        for panel in panels_of(board.to_json()):
            for target in panel["targets"]:
                yield Asked(name, panel["title"], target)


ASKED = tuple(_asked())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Scraped:
    kept = past(asked.text for asked in ASKED)
    record(kept, tmp_path_factory.mktemp("recorded"), END - SECONDS, END)
    return kept


@pytest.fixture(scope="module")
def prometheus(kept: Scraped, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("past")
    kept.write(folder / "past.om")
    with serving(folder / "past.om", folder) as server:
        yield server


def _told(kept: Scraped, cluster: str, name: str, wanted: dict[str, str]) -> bool:
    """Whether a cluster has a series of that name with these labels."""
    said = [f'{label}="{value}"' for label, value in {**wanted, "cluster": cluster}.items()]
    return any(all(each in f"{labels}," for each in said) for labels in kept.series.get(name, {}))


def test_what_is_told_is_shown_bounded_and_named(kept: Scraped, prometheus: Prometheus) -> None:
    """All selectors of a query have series in a cluster: then the query has some of that cluster too."""
    wrong = []
    shown: dict[str, set[str]] = defaultdict(set)
    for asked in ASKED:
        text = interpolated(asked.text, _EVERYTHING, "60s")
        answer = prometheus.query_range(text, END - SECONDS, END, SCRAPE)
        of = defaultdict(list)
        for labels in answer:
            of[dict(labels).get("cluster", "")].append(dict(labels))
        selectors = SELECTOR.findall(asked.text)
        for cluster in (*REAL, MADE_UP):
            # a share of nothing is nothing: what is divided by may be 0 in a recording
            fair = bool(selectors) and (cluster == MADE_UP or "> 0)" not in asked.text)
            fair = fair and f"{asked.board} / {asked.panel}" not in QUIET
            if of[cluster]:
                shown[f"{asked.board} / {asked.panel}"].add(cluster)
            elif fair and all(_told(kept, cluster, name, matched(labels)) for name, labels in selectors):
                wrong.append(f"{asked}: empty in {cluster}: {text}")
            if len(of[cluster]) > _MOST_SERIES and asked.target["format"] != "table":
                wrong.append(f"{asked}: {len(of[cluster])} series in {cluster}")
            wrong += [
                f"{asked}: no label {label} in {cluster}"
                for label in _LEGEND.findall(asked.target["legendFormat"])
                if any(not labels.get(label) for labels in of[cluster])
            ]
        if "" in of:
            wrong.append(f"{asked}: series of no cluster: {text}")
    panels = {f"{asked.board} / {asked.panel}" for asked in ASKED if SELECTOR.search(asked.text)}
    wrong += [f"{panel}: never shows anything" for panel in panels - shown.keys() - QUIET.keys()]
    assert not wrong, "\n".join(wrong)


def test_each_line_of_a_panel_bears_a_legend_of_its_own(prometheus: Prometheus) -> None:
    """In one cluster, whose engine has two ranks: two lines of one name can't be told apart."""
    alike = []
    for panel, queries in _by_panel().items():
        for cluster in (*REAL, MADE_UP):
            legends: list[str] = []
            for asked in queries:
                text = interpolated(asked.text, {**_EVERYTHING, "cluster": cluster}, "60s")
                for labels in prometheus.query_range(text, END - 60, END, SCRAPE):
                    told = dict(labels)
                    legends.append(
                        _LEGEND.sub(
                            lambda found, told=told: told.get(found[1], ""), asked.target["legendFormat"]
                        )
                    )
            alike += [f"{panel} in {cluster}: {each}" for each in set(legends) if legends.count(each) > 1]
    assert not alike, "\n".join(alike)


def _by_panel() -> dict[str, list[Asked]]:
    panels: dict[str, list[Asked]] = defaultdict(list)
    for asked in ASKED:
        if asked.target["format"] != "table":
            panels[f"{asked.board} / {asked.panel}"].append(asked)
    return panels


def test_label_values_that_are_asked_for_are_told_by_an_engine(kept: Scraped) -> None:
    """A value that never existed would leave a panel empty for ever."""
    dead = set()
    for asked in ASKED:
        for name, labels in SELECTOR.findall(asked.text):
            wanted = matched(labels)
            where = [cluster for cluster in REAL if _told(kept, cluster, name, {})]
            if wanted and where and not any(_told(kept, cluster, name, wanted) for cluster in where):
                dead.add((name, next(iter(wanted.values()))))
    assert dead <= set(UNSEEN), f"{dead - set(UNSEEN)}"


def test_an_alert_that_fires_is_counted_and_listed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What Prometheus itself writes is no signal of ours: a page counts, a note doesn't."""
    kept = Scraped()
    for severity in ("page", "warning", "info"):
        for step in range(5):
            kept.add(
                "ALERTS",
                END - step * SCRAPE,
                1.0,
                alertname="KvThrashing",
                alertstate="firing",
                cluster="one",
                engine="e",
                severity=severity,
            )
    for points in kept.series["ALERTS"].values():
        points.sort()
    folder = tmp_path_factory.mktemp("alerts")
    kept.write(folder / "alerts.om")
    pages, listed = (
        next(asked.text for asked in ASKED if asked.panel == title) for title in ("Pages", "Alerts that fire")
    )
    with serving(folder / "alerts.om", folder) as server:
        counted = server.query_range(interpolated(pages, _EVERYTHING, "60s"), END, END, SCRAPE)
        table = server.query_range(interpolated(listed, _EVERYTHING, "60s"), END, END, SCRAPE)
    assert [list(values.values()) for values in counted.values()] == [[1.0]]
    assert {dict(labels)["severity"] for labels in table} == {"page", "warning"}
