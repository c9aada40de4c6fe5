"""What explains an alert that fired: what is wrong, by what the pack says of its alerts."""

from __future__ import annotations

from alerts.catalogue import ALERTS
from alerts.causes import Cause
from alerts.explanations import explained

A, B = ({"engine": name, "rank": "0", "model_name": "m"} for name in "ab")


def one(name: str, **labels: str) -> dict[str, str]:
    return {"alertname": name, **labels}


def names(*fired: dict[str, str], causes: tuple[Cause, ...]) -> list[str]:
    return [labels["alertname"] for labels in explained(fired, causes, ALERTS)]


def test_one_of_what_is_wrong_explains_itself_and_its_own_subjects_others() -> None:
    thrash, here, there = (
        one("KvThrashing", **A),
        one("KvCachePressure", **A),
        one("KvCachePressure", **B),
    )
    assert explained([here, there, thrash], [Cause.RECOMPUTE_THRASH], ALERTS) == [thrash, here]
    assert explained([here, there, thrash], [Cause.KV_LEAK], ALERTS) == []


def test_what_counts_engines_is_explained_by_them_and_explains_its_cluster() -> None:
    thrash, many, storm = (
        one("KvThrashing", **A),
        one("ManyEnginesStuck"),
        one("RetryStorm", gateway="g"),
    )
    assert names(storm, many, thrash, causes=(Cause.RECOMPUTE_THRASH,)) == [
        "KvThrashing",
        "ManyEnginesStuck",
        "RetryStorm",
    ]
    assert names(storm, thrash, causes=(Cause.RECOMPUTE_THRASH,)) == ["KvThrashing"]


def test_who_is_told_all_the_same_is_explained_too() -> None:
    lost, down, gone = (
        one("GpuLost", uuid="GPU-1"),
        one("EngineDown", engine="a"),
        one("CapacityGone"),
    )
    assert names(lost, down, gone, causes=(Cause.GPU_LOST,)) == ["GpuLost", "EngineDown", "CapacityGone"]
    assert names(down, gone, causes=(Cause.GPU_LOST,)) == []


def test_every_name_that_brings_an_alert_about_or_is_counted_exists_and_explains_in_one_way_only() -> None:
    for alert in ALERTS.values():
        named = (*alert.quiet_under, *alert.consequence_of, *alert.brought_by, *alert.counts)
        assert set(named) <= ALERTS.keys()
        assert len(set(named)) == len(named)
        assert alert.name not in named
