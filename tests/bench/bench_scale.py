"""What one more worker costs a fleet: its page, the Prometheus that scrapes it, the store behind, who analyses it.

A worker is one engine on eight GPUs, its pages those that the sidecar made of a recording. Prometheus scrapes many of
them, each second instead of each 15 s so that it takes less of ours. An hour of some is written to a Prometheus that
writes on to a VictoriaMetrics: what a sample is on the wire and on the disks of both. From the store one worker's hour
is read and judged. What is multiplied for a fleet of 10,000 is said line by line. What rules, the desk and a report
cost: ``python -m tests.bench rules desk report``.
"""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import yaml

from analysis.unusual import looked_at
from exporter.render import PLAIN, Rendering
from tests.bench import report
from tests.bench.bench_cycle import Cycle
from tests.bench.replay import Replay
from tests.bench.report import Figure
from tests.bench.worker_pages import GPUS, SCRAPE_SECONDS, Pages
from tests.support import victoria_metrics
from tests.support.captures import recording
from tests.support.mirrored import wait_sent
from tests.support.prometheus import Prometheus, started
from tests.support.remote_write import body

FLEET = 10_000
SERIES_A_SERVER = 2_000_000
"""That one Prometheus is given here: some 10 GB, and a restart of minutes."""
WRITTEN, HOUR = 20, 3600
_CAPTURE = "vllm-0.32.0"
_FILL_SECONDS = 320
_SCRAPED, _SCRAPED_SECONDS, _IDLE_SECONDS = 50, 30, 10
_AHEAD_SECONDS = 120
_DAY = 86_400
_CPU, _RSS, _SERIES = (
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "prometheus_tsdb_head_series",
)
_SCRAPES = "prometheus_target_interval_length_seconds_count"
_WIRE = "prometheus_remote_storage_bytes_total"


@dataclass(frozen=True, slots=True)
class Page:
    """Of one worker: as it is, and as a Prometheus asks for it."""

    plain: bytes
    zipped: bytes
    samples: int


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one worker and scrape, and of a sample. ``judged_seconds``: of CPU, for an hour of a worker."""

    scrape_cpu_seconds: float
    series_bytes: float
    wire_bytes: float
    disk_bytes: float
    store_bytes: float
    judged_seconds: float


def main() -> None:
    """Prints the figures."""
    page = _page()
    report.record(Figure(f"a worker's page, one engine on {GPUS} GPUs", len(page.plain) / 1e3, "kB"))
    report.record(Figure("the same, gzipped as it is asked for", len(page.zipped) / 1e3, "kB"))
    report.record(Figure("samples of a scrape", page.samples, ""))
    with tempfile.TemporaryDirectory() as name:
        scrape, series = _scraped(page, Path(name))
    with tempfile.TemporaryDirectory() as name:
        wire, disk, store, judged = _stored(Path(name))
    _fleet(page, Costs(scrape, series, wire, disk, store, judged))


def _page() -> Page:
    bodies = [text for entry, text in recording(_CAPTURE).scrapes() if entry["phase"] == "load"]
    cycle = Cycle.over(Replay.of(bodies, "load"), GPUS)
    for _ in range(_FILL_SECONDS):
        cycle.run()
    assert cycle.snapshot is not None
    rendering = Rendering(cycle.snapshot)
    plain = rendering.body(PLAIN)
    samples = sum(bool(line) and not line.startswith(b"#") for line in plain.splitlines())
    return Page(plain, rendering.body(PLAIN, zipped=True), samples)


class _Workers(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Whoever scrapes leaves when it ends."""


@contextmanager
def _serving(page: Page) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(page.zipped)))
            self.end_headers()
            self.wfile.write(page.zipped)

        def log_message(self, *_: object) -> None:
            pass

    with _Workers(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _scraped(page: Page, folder: Path) -> tuple[float, float]:
    """CPU seconds a scrape, and bytes of memory a series, of a Prometheus that scrapes and nothing else."""
    settings = folder / "prometheus.yml"
    settings.write_text("global: {}\n", encoding="utf-8")
    with (
        _serving(page) as port,
        started(settings, folder / "data", "--web.enable-lifecycle", cores=1) as server,
    ):
        time.sleep(_IDLE_SECONDS)
        empty = server.own(_RSS)
        targets = [
            {"targets": [f"127.0.0.1:{port}"], "labels": {"instance": f"worker-{each}"}}
            for each in range(_SCRAPED)
        ]
        job = {"job_name": "thrashold", "scrape_interval": "1s", "static_configs": targets}
        settings.write_text(yaml.safe_dump({"scrape_configs": [job]}), encoding="utf-8")
        server.reload()
        time.sleep(_IDLE_SECONDS)
        cpu, scrapes = server.own(_CPU), server.own(_SCRAPES)
        time.sleep(_SCRAPED_SECONDS)
        spent, done = server.own(_CPU) - cpu, server.own(_SCRAPES) - scrapes
        scrape = spent / done
        series = (server.own(_RSS) - empty) / server.own(_SERIES)
        report.line(f"  {done:.0f} scrapes of {_SCRAPED} workers; {server.own(_SERIES):.0f} series")
    report.record(Figure("Prometheus: CPU of a scrape", scrape * 1e3, "ms"))
    report.record(Figure("Prometheus: memory (RSS) a series", series, "B"))
    return scrape, series


def _stored(folder: Path) -> tuple[float, float, float, float]:
    """Bytes a sample on the wire, on Prometheus's disk and on the store's, and CPU seconds to judge a worker's hour."""
    pages = Pages.of("load")
    (folder / "victoria").mkdir()
    newest = (int(time.time()) + _AHEAD_SECONDS + HOUR) // SCRAPE_SECONDS * SCRAPE_SECONDS * 1000
    history = pages.histories(newest, {name: HOUR - 2 * SCRAPE_SECONDS for name, _ in pages.series})
    with victoria_metrics.serving(folder / "victoria") as victoria:
        settings = folder / "prometheus.yml"
        told = {"remote_write": [{"url": f"{victoria.url}/api/v1/write"}]}
        settings.write_text(yaml.safe_dump(told), encoding="utf-8")
        flags = ("--web.enable-remote-write-receiver", "--web.enable-admin-api")
        with started(settings, folder / "data", *flags) as server:
            for number in range(WRITTEN):
                server.write(body(list(history.worker(number, 1))))
            written = WRITTEN * len(pages.series) * (HOUR // SCRAPE_SECONDS)
            wait_sent(server, written)
            report.line(f"  {written / 1e6:.1f} million samples: an hour of {WRITTEN} workers")
            wire = server.own(_WIRE) / written
            snapshot = httpx.post(f"{server.url}/api/v1/admin/tsdb/snapshot", timeout=120.0, trust_env=False)
            snapshot.raise_for_status()
            disk = _bytes(folder / "data/snapshots") / written
        victoria_metrics.flush(victoria)
        report.record(Figure("remote write: bytes a sample", wire, "B"))
        report.record(Figure("Prometheus: bytes a sample on disk, with the index", disk, "B"))
        judged = _judged(victoria, newest / 1000 - HOUR, newest / 1000)
        report.record(Figure("VictoriaMetrics: memory (RSS)", victoria.own(_RSS) / 1e6, "MB"))
    # what is in memory goes to disk at its end
    store = _bytes(folder / "victoria/data") / written
    report.record(Figure("VictoriaMetrics: bytes a sample on disk, with the index", store, "B"))
    return wire, disk, store, judged


def _judged(victoria: Prometheus, start: float, end: float) -> float:
    """CPU seconds of what reads an hour of one worker from the store, and says what was unusual in it."""
    matchers = ('instance="10.0.0.1:9807"',)
    looked_at(victoria.url, start, end, matchers=matchers)  # imports, and what is compiled
    began = time.process_time()
    look = looked_at(victoria.url, start, end, matchers=matchers)
    seconds = time.process_time() - began
    report.line(f"  read from the store: {look.series} series, every {look.step_seconds:g} s")
    report.record(Figure("thrashold anomalies: CPU for an hour of one worker", seconds, "s"))
    return seconds


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _fleet(page: Page, costs: Costs) -> None:
    """What 10,000 of them make."""
    series = FLEET * page.samples
    a_second = series / SCRAPE_SECONDS
    servers = math.ceil(series / SERIES_A_SERVER)
    for name, value, unit in (
        ("series", series / 1e6, "million"),
        ("samples a second", a_second / 1e3, "thousand"),
        ("pages over the network", FLEET * len(page.zipped) / SCRAPE_SECONDS / 1e6, "MB/s"),
        ("CPU of all scrapes", FLEET * costs.scrape_cpu_seconds / SCRAPE_SECONDS, "cores"),
        ("memory of all that scrape", series * costs.series_bytes / 1e9, "GB"),
        (f"Prometheus servers of {SERIES_A_SERVER / 1e6:g} million series", servers, ""),
        ("memory of each", series * costs.series_bytes / servers / 1e9, "GB"),
        ("remote write of all", a_second * costs.wire_bytes / 1e6, "MB/s"),
        ("disk of all a day, in Prometheus", a_second * _DAY * costs.disk_bytes / 1e9, "GB"),
        ("disk of all a day, in the store", a_second * _DAY * costs.store_bytes / 1e9, "GB"),
        ("cores that judge each hour of each worker", FLEET * costs.judged_seconds / HOUR, "cores"),
    ):
        report.record(Figure(f"{FLEET} workers: {name}", value, unit))


if __name__ == "__main__":
    report.standalone(main)
