"""The example configuration, by Alertmanager's own tools and by a real one that runs."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from alerts.alertmanager import configuration, inhibit_rules, shared
from alerts.catalogue import ALERTS
from alerts.command import SHIPPED
from alerts.pack_settings import PackSettings
from tests.support.alertmanager import PACKAGE, started
from tests.support.prometheus import tool

CONFIGURATION = Path(__file__).resolve().parents[2] / SHIPPED / "alertmanager.example.yml"


def amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tool("amtool", PACKAGE), *arguments], capture_output=True, text=True, timeout=30, check=False
    )


def test_amtool_takes_it() -> None:
    checked = amtool("check-config", str(CONFIGURATION))
    assert checked.returncode == 0, checked.stderr
    assert f"{len(list(inhibit_rules(PackSettings(), ALERTS)))} inhibit rules" in checked.stdout


@pytest.mark.parametrize(
    ("severity", "receivers"), [("page", "desk,page"), ("warning", "desk,tell"), ("info", "nobody")]
)
def test_each_severity_reaches_whom_it_is_for_and_the_desk(severity: str, receivers: str) -> None:
    routed = amtool(
        "config",
        "routes",
        "test",
        f"--config.file={CONFIGURATION}",
        f"--verify.receivers={receivers}",
        f"severity={severity}",
        "cause=overload",
    )
    assert routed.returncode == 0, routed.stdout + routed.stderr


def _groups(firing: list[dict[str, Any]], folder: Path) -> dict[str, list[set[str]]]:
    """By receiver, names of alerts that a real one puts into one notification."""
    with started(CONFIGURATION, folder) as url:
        httpx.post(f"{url}/api/v2/alerts", json=firing, timeout=5, trust_env=False).raise_for_status()
        found = httpx.get(f"{url}/api/v2/alerts/groups", timeout=5, trust_env=False).json()
    told: dict[str, list[set[str]]] = {}
    for group in found:
        told.setdefault(group["receiver"]["name"], []).append(
            {each["labels"]["alertname"] for each in group["alerts"]}
        )
    return told


def test_what_spreads_through_a_fleet_is_one_page_and_what_is_something_else_is_another(
    tmp_path: Path,
) -> None:
    names = (
        *("KvThrashing", "KvSequencesSwapped", "KvOffloadThrash", "UsersStillWait"),
        *("SloFirstTokenBurnFast", "SloTokenPaceBurnQuick", "TokensCrawl"),
        *("SwapPoolFilling", "EngineFrozen", "RetryStorm", "CapacityGone"),
        *("TailWaste", "PcieLinkDowngraded", "GpuXid"),
        "ManyEnginesStuck",
    )
    firing = [
        {
            "labels": {
                "alertname": name,
                "severity": ALERTS[name].severity.value,
                "cause": ALERTS[name].cause.value,
                "cluster": "c",
                "engine": engine,
            }
        }
        for name in names
        for engine in ("a", "b")
    ]
    told = _groups(firing, tmp_path)
    assert sorted(map(sorted, told["page"])) == [
        ["CapacityGone"],
        ["EngineFrozen"],
        ["KvOffloadThrash", "KvSequencesSwapped", "KvThrashing", "UsersStillWait"],
        ["RetryStorm"],
        ["SloFirstTokenBurnFast", "SloTokenPaceBurnQuick", "TokensCrawl"],
        ["SwapPoolFilling"],
    ]
    assert sorted(map(sorted, told["tell"])) == [["GpuXid"], ["PcieLinkDowngraded"], ["TailWaste"]]
    (desk,) = told["desk"]
    assert desk == set(names) - {"ManyEnginesStuck"}


def test_every_explanation_is_a_rule_about_the_same_subject() -> None:
    told = {
        (name, rule["target_matchers"][0].partition('"')[2].rstrip('"')): tuple(rule["equal"])
        for rule in configuration(PackSettings(cluster_labels=("region", "cluster")))["inhibit_rules"]
        for name in rule["source_matchers"][0].partition('"')[2].rstrip('"').split("|")
    }
    clusters = ("region", "cluster")
    wanted = {
        (name, alert.name): (*clusters, *shared(alert, ALERTS[name]))
        for alert in ALERTS.values()
        for name in alert.quiet_under
    }
    wanted |= {(name, alert.name): clusters for alert in ALERTS.values() for name in alert.consequence_of}
    assert told == wanted


def test_a_real_one_silences_what_is_explained_and_nothing_else(tmp_path: Path) -> None:
    def alert(name: str, **labels: str) -> dict[str, Any]:
        severity = ALERTS[name].severity.value
        return {"labels": {"alertname": name, "severity": severity, "cluster": "c", **labels}}

    rank = {"engine": "a", "rank": "0", "model_name": "m"}
    firing = [
        alert("KvThrashing", **rank),
        alert("KvCachePressure", **rank),
        alert("TokensCrawl", **rank),
        alert("ManyEnginesStuck"),
        alert("FleetProgressFalling"),
        alert("KvCachePressure", **rank | {"engine": "b"}),
        alert("TokensCrawl", **rank | {"engine": "b"}),
        alert("KvCachePressure", **rank | {"cluster": "d"}),
        alert("KvThrashing", **rank | {"cluster": "large"}),
        alert("KvCachePressure", **rank | {"cluster": "large"}),
        alert("KvCachePressure", **rank | {"cluster": "large", "engine": "b"}),
        alert("SloFirstTokenBurnFast", cluster="large", slo="ttft"),
        alert("FleetProgressFalling", cluster="large"),
        alert("PcieLinkDowngraded", uuid="GPU-1"),
    ]
    with started(CONFIGURATION, tmp_path) as url:
        httpx.post(f"{url}/api/v2/alerts", json=firing, timeout=5, trust_env=False).raise_for_status()
        until = time.monotonic() + 20
        silenced: set[tuple[str, str, str]] = set()
        while time.monotonic() < until and len(silenced) < 5:
            told = httpx.get(f"{url}/api/v2/alerts", timeout=5, trust_env=False).json()
            silenced = {
                (each["labels"]["cluster"], each["labels"]["alertname"], each["labels"].get("engine", ""))
                for each in told
                if each["status"]["inhibitedBy"]
            }
            time.sleep(0.1)
    assert silenced == {
        ("c", "KvCachePressure", "a"),
        ("c", "TokensCrawl", "a"),
        ("c", "FleetProgressFalling", ""),
        ("c", "KvCachePressure", "b"),  # the load that many leave comes to the others
        ("large", "KvCachePressure", "a"),  # one of a large fleet explains itself, and no more
    }
