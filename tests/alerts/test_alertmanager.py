"""The example configuration, by Alertmanager's own tools and by a real one that runs."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from alerts.alertmanager import configuration, inhibit_rules, shared
from alerts.catalogue import ALERTS
from alerts.command import SHIPPED
from alerts.pack_settings import PackSettings
from tests.support.prometheus import tool

CONFIGURATION = Path(__file__).resolve().parents[2] / SHIPPED / "alertmanager.example.yml"
PACKAGE = "prometheus-alertmanager"


def amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tool("amtool", PACKAGE), *arguments], capture_output=True, text=True, timeout=30, check=False
    )


def test_amtool_takes_it() -> None:
    checked = amtool("check-config", str(CONFIGURATION))
    assert checked.returncode == 0, checked.stderr
    assert f"{len(list(inhibit_rules(PackSettings(), ALERTS)))} inhibit rules" in checked.stdout


@pytest.mark.parametrize(
    ("severity", "receiver"), [("page", "page"), ("warning", "tell"), ("info", "nobody")]
)
def test_each_severity_reaches_whom_it_is_for(severity: str, receiver: str) -> None:
    routed = amtool(
        "config",
        "routes",
        "test",
        f"--config.file={CONFIGURATION}",
        f"--verify.receivers={receiver}",
        f"severity={severity}",
        "cause=overload",
    )
    assert routed.returncode == 0, routed.stdout + routed.stderr


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


@contextlib.contextmanager
def alertmanager(folder: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "alertmanager.log").open("wb") as sink:
        process = subprocess.Popen(
            [
                tool("prometheus-alertmanager", PACKAGE),
                f"--config.file={CONFIGURATION}",
                f"--storage.path={folder}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--cluster.listen-address=",
            ],
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/-/ready", timeout=2, trust_env=False).status_code == httpx.codes.OK:
                    break
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def test_a_real_one_silences_what_is_explained_and_nothing_else(tmp_path: Path) -> None:
    def alert(name: str, **labels: str) -> dict[str, Any]:
        severity = ALERTS[name].severity.value
        return {"labels": {"alertname": name, "severity": severity, "cluster": "c", **labels}}

    rank = {"engine": "a", "rank": "0", "model_name": "m"}
    firing = [
        alert("KvThrashing", **rank),
        alert("KvCachePressure", **rank),
        alert("TokensCrawl", **rank),
        alert("FleetProgressFalling"),
        alert("KvCachePressure", **rank | {"engine": "b"}),
        alert("TokensCrawl", **rank | {"engine": "b"}),
        alert("KvCachePressure", **rank | {"cluster": "d"}),
        alert("PcieLinkDowngraded", uuid="GPU-1"),
    ]
    with alertmanager(tmp_path) as url:
        httpx.post(f"{url}/api/v2/alerts", json=firing, timeout=5, trust_env=False).raise_for_status()
        until = time.monotonic() + 20
        silenced: set[tuple[str, str, str]] = set()
        while time.monotonic() < until and len(silenced) < 4:
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
        ("c", "KvCachePressure", "b"),  # the load that one leaves comes to the others
    }
