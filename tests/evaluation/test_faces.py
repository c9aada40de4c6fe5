"""Both faces of every alert's condition over two drills: clusters, engines and ranks, gaps, series that vanish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from alerts.alert import Alert, Severity
from alerts.catalogue import ALERTS
from alerts.causes import Cause
from alerts.conditions import All, Compare, Reading
from alerts.thresholds import THRESHOLDS, Thresholds
from drill.scenarios.setting import Setting
from exporter.derive.ranks import IMBALANCE
from exporter.derive.traffic import SEQUENCES
from tests.evaluation.faces import CLUSTERS, TREES, Data, compared, medians, subjects, two_clusters
from tests.support.prometheus import Prometheus, openmetrics, serving

SECONDS = 375
"""Long enough for the incident to swap and for the tier to thrash."""
SWITCH = {
    "DecodeStalled",
    "HeadOfLineBlocking",
    "KvCachePressure",
    "KvDemandBeyondPool",
    "KvExhaustionNear",
    "KvOffloadThrash",
    "KvSequencesSwapped",
    "KvSwapEnabled",
    "KvThrashing",
    "OrphanedKv",
    "PcieSaturatedByOthers",
    "PcieSaturatedBySwap",
    "SwapPoolFilling",
    "TailWaste",
    "TokensCrawl",
}
"""True of something and false of something here; of all others both faces say that they are never true here."""


@pytest.fixture(scope="module")
def data() -> Data:
    return two_clusters(("incident", "offload-thrash"), Setting(engines=2), SECONDS)


@pytest.fixture(scope="module")
def prometheus(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("faces")
    dump = folder / "data.om"
    dump.write_text(openmetrics(data))
    with serving(dump, folder) as server:
        yield server


def test_two_of_each_are_told_apart_by_one_label_alone_and_some_of_it_is_missing(data: Data) -> None:
    names = ("cluster", "engine", "rank")
    assert subjects(names, data) == {
        (cluster, engine, rank)
        for cluster in CLUSTERS
        for engine in ("engine-0", "engine-1")
        for rank in ("0", "1")
    }
    lengths = {len(row) for (name, _), row in data.items() if name == SEQUENCES.full_name}
    assert min(lengths) < max(lengths) - 5
    assert len(lengths) > 3


def test_prometheus_and_holds_agree_at_every_instant_on_every_alert(
    data: Data, prometheus: Prometheus
) -> None:
    amid = medians(data, TREES.values())
    # written with fewer digits than it has, one of these would be another number
    assert any(float(f"{value:g}") != value for value in _changed(amid))
    switched = set()
    for thresholds in (THRESHOLDS, amid):
        for name, alert in TREES.items():
            result = compared(alert, data, prometheus, thresholds)
            assert result.asked, name
            assert not result.differ, result.differ
            switched |= {name} if result.switches else set()
    assert switched >= SWITCH


def _changed(thresholds: Thresholds) -> list[float]:
    return [
        getattr(thresholds, name)
        for name in Thresholds.__dataclass_fields__
        if getattr(thresholds, name) != getattr(THRESHOLDS, name)
    ]


def test_a_difference_is_told_with_its_subject_and_its_time(data: Data, prometheus: Prometheus) -> None:
    alert = ALERTS["KvDemandBeyondPool"]
    found = compared(
        alert, {key: row for key, row in data.items() if "rank" in dict(key[1])}, prometheus, THRESHOLDS
    )
    assert not found.differ
    shifted = {key: {at: 2 - value for at, value in row.items()} for key, row in data.items()}
    wrong = compared(alert, shifted, prometheus, THRESHOLDS).differ
    assert "KvDemandBeyondPool of ('east', 'engine-0', '0', 'llama-70b') at " in " ".join(wrong)


def test_what_the_largest_value_does_not_tell_is_refused(data: Data, prometheus: Prometheus) -> None:
    narrow = Compare(Reading(SEQUENCES, (("state", "running"),)), "<", 1.0)
    alert = Alert(
        "Narrow",
        Severity.INFO,
        Cause.OVERLOAD,
        All(Compare(Reading(IMBALANCE), ">", 1.0), narrow),
        "s",
        "m",
    )
    with pytest.raises(ValueError, match="Narrow is no tree"):
        compared(alert, data, prometheus, replace(THRESHOLDS))
