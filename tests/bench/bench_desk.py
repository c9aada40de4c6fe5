"""What the desk is worth in a storm: from a page to its report, and how many webhooks a second it keeps meanwhile.

The worker is the replay of a real engine; its flight recorder holds an hour of it with eight restless GPUs. Webhooks
come over kept connections, each of them twice, as from two Alertmanagers, while reports are being made. How long a page
takes to open is that of a first visit, of a browser that has just started; the best of some is shown beside it.
"""

from __future__ import annotations

import contextlib
import http.client
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

import httpx

from exporter.recorder_writer import RecordingWriter, Retention
from tests.bench import report
from tests.bench.report import Figure
from tests.bench.restless_gpus import node_snapshots
from tests.bench.stage import engine, sidecar
from tests.support.chromium import PROGRAM, browser
from tests.support.desk import RunningDesk, alert, message, running_desk

BAR_WEBHOOKS_A_SECOND = 500.0
BAR_REPORT_SECONDS = 30.0
BAR_OPEN_SECONDS = 1.0
BAR_PAGE_MEGABYTES = 2.0

_HOUR = 3600
_GPUS = 8
_BURST = 5000
_CONNECTIONS = 4
_CLUSTERS = 10
_VISITS = 5
_NAVIGATION = "performance.getEntriesByType('navigation')[0]"
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]"
_MOST_REPORT_SECONDS = 300.0


def _recorded(path: Path) -> None:
    with contextlib.closing(RecordingWriter(path, Retention())) as writer:
        for snapshot in node_snapshots(_HOUR, _GPUS, time.time() // 60 * 60 - _HOUR):
            writer.write(snapshot)


def _reported(client: httpx.Client, began: float) -> None:
    while client.get("/api/v1/incidents/1").json()["report"] not in {"done", "failed"}:
        if time.monotonic() - began > _MOST_REPORT_SECONDS:
            raise RuntimeError("there is no report")
        time.sleep(0.1)
    seconds = time.monotonic() - began
    told = client.get("/api/v1/incidents/1").json()
    for event in told["events"]:
        report.line(f"    {event['at'] - told['events'][0]['at']:5.1f} s  {event['text']}")
    page = client.get("/incidents/1/report")
    page.raise_for_status()
    report.record(
        Figure("desk, from page to report, an hour of one worker", seconds, "s", BAR_REPORT_SECONDS)
    )
    report.record(Figure("desk, report page", len(page.content) / 1e6, "MB", BAR_PAGE_MEGABYTES))


def _opened(desk: RunningDesk) -> None:
    if PROGRAM is None:
        report.loud("how long the report takes to open is not measured: there is no Chromium here")
        return
    painted, loaded = [], []
    with browser() as shown:
        for _ in range(_VISITS):
            shown.visit(f"{desk.url}/incidents/1/report")
            shown.wait(f"{_NAVIGATION}.loadEventEnd > 0 && {_PAINT} !== undefined")
            painted.append(shown.value(f"{_PAINT}.startTime") / 1e3)
            loaded.append(shown.value(f"{_NAVIGATION}.loadEventEnd") / 1e3)
    for name, seconds in (("is there to read in Chromium", painted), ("and its charts are loaded", loaded)):
        report.record(Figure(f"desk, report {name}, first visit", seconds[0], "s", BAR_OPEN_SECONDS))
        report.record(Figure(f"desk, report {name}, best of {_VISITS}", min(seconds), "s"))


def _sent(url: str, bodies: Sequence[bytes], milliseconds: list[float], refused: list[int]) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    for body in bodies:
        began = time.perf_counter()
        connection.request("POST", "/alerts", body)
        answer = connection.getresponse()
        answer.read()
        milliseconds.append((time.perf_counter() - began) * 1e3)
        if answer.status != http.client.OK:
            refused.append(answer.status)
    connection.close()


def _burst(desk: RunningDesk, client: httpx.Client) -> None:
    now = time.time()
    alerts = [
        message(alert("KvThrashing", f"{place:x}", now, cluster=f"c{place % _CLUSTERS}", engine=f"e{place}"))
        for place in range(_BURST // 2)
    ]
    milliseconds: list[float] = []
    refused: list[int] = []
    client.post("/api/v1/incidents/1/report").raise_for_status()
    twice = [each for each in alerts for _ in range(2)]
    threads = [
        threading.Thread(target=_sent, args=(desk.url, twice[first::_CONNECTIONS], milliseconds, refused))
        for first in range(_CONNECTIONS)
    ]
    began = time.monotonic()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    seconds = time.monotonic() - began
    working = client.get("/api/v1/incidents/1").json()["report"]
    report.line(f"  {_BURST} webhooks in {seconds:.1f} s; the report asked for before: {working}")
    incidents = [each for each in client.get("/api/v1/incidents").json() if each["number"] != 1]
    kept = 0
    for each in incidents:
        told = client.get(f"/api/v1/incidents/{each['number']}").json()
        kept += len(told["alerts"]) + told["more_alerts"]
    report.record(
        Figure(
            "desk, webhooks while a report is made", _BURST / seconds, "1/s", BAR_WEBHOOKS_A_SECOND, "higher"
        )
    )
    report.record(Figure("desk, a webhook's answer, p99", quantiles(milliseconds, n=100)[98], "ms"))
    report.record(Figure("desk, alerts lost or doubled", abs(kept - _BURST // 2) + len(refused), "", 0))
    report.record(Figure("desk, incidents too many or too few", abs(len(incidents) - _CLUSTERS), "", 0))


def main() -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _recorded(folder / "recording")
        command, more = [sys.executable, "-m", "thrashold"], ["--recorder", str(folder / "recording")]
        with engine("vllm-0.32.0", 1) as source, sidecar(command, source.ports[0], folder, more) as worker:
            config = folder / "desk.yaml"
            config.write_text(f"workers: ['http://127.0.0.1:{worker.port}']\n", encoding="utf-8")
            with running_desk(folder / "data", ["--config", str(config)]) as desk, desk.client() as client:
                began = time.monotonic()
                page = message(alert("KvThrashing", "aa", time.time() - 30, cluster="first"))
                client.post("/alerts", content=page).raise_for_status()
                _reported(client, began)
                _opened(desk)
                _burst(desk, client)


if __name__ == "__main__":
    report.standalone(main)
