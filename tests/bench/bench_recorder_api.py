"""What an export over HTTP costs the sidecar: six hours of a node with eight GPUs, while ``/metrics`` is scraped.

The recording is of a whole day. A day's export holds some more at once and takes six times as long.
"""

from __future__ import annotations

import http.client
import sqlite3
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from exporter.recorder_writer import RecordingWriter, Retention
from tests.bench import report
from tests.bench.processes import usage
from tests.bench.report import Figure
from tests.bench.restless_gpus import node_snapshots
from tests.bench.stage import Sidecar, engine, sidecar

BAR_GROWTH_MB = 5.0
BAR_CHILD_MB = 64.0
BAR_P99_MS = 50.0

_SECONDS = 1200
_DAY = 86_400
_EXPORTED = 6 * 3600
_GPUS = 8
_SCRAPE_SECONDS = 0.05
_CALM_SECONDS = 10.0
_PIECE_BYTES = 1 << 16


def _day(path: Path) -> None:
    """Record twenty minutes and let them be those of a whole day that ends now."""
    start = (time.time() - _DAY) // 60 * 60
    writer = RecordingWriter(path, Retention())
    for snapshot in node_snapshots(_SECONDS + 60, _GPUS, start):
        writer.write(snapshot)
    writer.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM tick")
        for lap in range(1, _DAY // _SECONDS):
            connection.execute(
                "INSERT INTO chunk (start, last, ticks, data)"
                " SELECT start + ?1, last + ?1, ticks, data FROM chunk WHERE start < ?2",
                (lap * _SECONDS * 1000, (start + _SECONDS) * 1000),
            )
        connection.execute("UPDATE series SET seen = (SELECT max(last) FROM chunk)")
    connection.close()


@dataclass(slots=True)
class Scraping:
    """Scrapes ``/metrics`` again and again while it runs, and looks at what the processes hold."""

    of: Sidecar
    milliseconds: list[float] = field(default_factory=list)
    child_megabytes: float = 0.0
    own_megabytes: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Until ``stop``."""
        connection = http.client.HTTPConnection("127.0.0.1", self.of.port, timeout=10)
        while not self._stop.wait(_SCRAPE_SECONDS):
            began = time.perf_counter()
            connection.request("GET", "/metrics")
            connection.getresponse().read()
            self.milliseconds.append((time.perf_counter() - began) * 1e3)
            self._look()
        connection.close()

    def stop(self) -> None:
        """End it."""
        self._stop.set()

    def _look(self) -> None:
        pid = self.of.process.pid
        tasks = Path(f"/proc/{pid}/task")
        children = [each for task in tasks.iterdir() for each in (task / "children").read_text().split()]
        self.own_megabytes = max(self.own_megabytes, _rss(pid))
        for child in children:
            self.child_megabytes = max(self.child_megabytes, _rss(int(child)))

    @property
    def p99(self) -> float:
        """Of the scrapes' time, in milliseconds."""
        return quantiles(self.milliseconds, n=100)[98]


def _rss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    kibibytes = next((line.split()[1] for line in lines if line.startswith("VmRSS:")), "0")
    return int(kibibytes) * 1024 / 1e6


def _scraped(of: Sidecar, seconds: float | None = None) -> tuple[Scraping, int]:
    """Scrape for so long, or while an export runs; gives the bytes of that."""
    scraping = Scraping(of)
    thread = threading.Thread(target=scraping.run)
    thread.start()
    size = 0
    if seconds is None:
        connection = http.client.HTTPConnection("127.0.0.1", of.port, timeout=300)
        start = time.time() - _EXPORTED
        connection.request("GET", f"/api/v1/recorder?from={start}", headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        while piece := answer.read(_PIECE_BYTES):
            size += len(piece)
        connection.close()
    else:
        time.sleep(seconds)
    scraping.stop()
    thread.join()
    return scraping, size


def main() -> None:
    """Prints the figures."""
    if not Path("/proc/self/smaps_rollup").exists():
        report.loud("the export is not measured: this needs Linux's /proc")
        return
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "recording"
        _day(path)
        with (
            engine("vllm-0.32.0", 1) as source,
            sidecar(
                [sys.executable, "-m", "thrashold"], source.ports[0], Path(name), ["--recorder", str(path)]
            ) as running,
        ):
            calm, _ = _scraped(running, _CALM_SECONDS)
            cpu = usage(running.process.pid).cpu_seconds
            began = time.monotonic()
            busy, size = _scraped(running)
            seconds = time.monotonic() - began
            cpu = usage(running.process.pid).cpu_seconds - cpu
    report.line(f"  {_EXPORTED / 3600:.0f} h of {_GPUS} GPUs: {size / 1e6:.0f} MB of gzip in {seconds:.0f} s")
    report.line(f"  the sidecar itself took {100 * cpu / seconds:.1f} % of a core meanwhile")
    growth = busy.own_megabytes - calm.own_megabytes
    report.record(Figure("export over HTTP, the sidecar's RSS grows by", growth, "MB", BAR_GROWTH_MB))
    report.record(Figure("export over HTTP, RSS of its process", busy.child_megabytes, "MB", BAR_CHILD_MB))
    report.record(Figure("/metrics p99 without an export", calm.p99, "ms"))
    report.record(Figure("/metrics p99 during an export", busy.p99, "ms", BAR_P99_MS))


if __name__ == "__main__":
    report.standalone(main)
