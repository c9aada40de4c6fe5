"""What hearing KV events costs: the whole sidecar beside a publisher that plays a real engine's recording.

Batches are as vLLM made them, three events and 500 bytes each on average, over a real socket. CPU and memory are
the sidecar's, its one engine and its cycle included; the share of a publisher that can't keep up is said.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench import report
from tests.bench.processes import Usage, usage
from tests.bench.report import Figure
from tests.exporter.running import PAGE, Sidecar, engine, free_port, running
from tests.support.kv_events import recorded, stored
from tests.support.kv_publisher import Publisher

USUAL, FLOOD = 20_000, 50_000
BAR_CPU_PERCENT = 25.0
BAR_RSS_MB = 90.0
BAR_END_SECONDS = 1.0

_EVENTS_A_BATCH = 17_534 / 5_787
_WARM_SECONDS, _WATCH_SECONDS, _STILL_SECONDS = 4.0, 12.0, 3.0
_SETTLE_TRIES = 40


@dataclass(frozen=True, slots=True)
class Watched:
    """What the sidecar used while events came at a rate, and how many of them came."""

    cpu_percent: float
    rss_megabytes: float
    batches: int
    published: int
    lost: int


def main() -> None:
    """Prints the figures."""
    if not Path("/proc/self/smaps_rollup").exists():
        report.loud("not measured: this needs Linux's /proc")
        return
    recorded()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, engine(PAGE) as url, Publisher(port) as publisher:
        settings = Path(folder) / "settings.yaml"
        settings.write_text(f"engines:\n  - url: {url}\n    kv_events: tcp://127.0.0.1:{port}\n")
        with running("--config", str(settings)) as sidecar:
            publisher.subscribed()
            time.sleep(_WARM_SECONDS)
            idle = _while(sidecar, lambda: time.sleep(_WATCH_SECONDS))
            report.record(Figure("idle CPU, sidecar that hears KV events", idle[0], "% of a core"))
            report.record(Figure("idle RSS, the same", idle[1], "MB"))
            _tell(USUAL, _heard(sidecar, publisher, USUAL), BAR_CPU_PERCENT)
            _tell(FLOOD, _heard(sidecar, publisher, FLOOD), None)
            rss = _stands_still(sidecar, publisher)
            name = f"RSS after {_STILL_SECONDS:g} s of standstill at {FLOOD:,} events/s"
            report.record(Figure(name, rss, "MB", BAR_RSS_MB))
            report.record(Figure("SIGTERM to exit with KV events", sidecar.terminate(), "s", BAR_END_SECONDS))


def _tell(rate: int, watched: Watched, cpu_bar: float | None) -> None:
    events = watched.batches * _EVENTS_A_BATCH / (_WARM_SECONDS + _WATCH_SECONDS)
    report.line(
        f"  {rate:,} events/s: {watched.published} batches published, {watched.batches} heard ({events:,.0f}"
        f" events/s), {watched.lost} lost"
    )
    if watched.published * _EVENTS_A_BATCH < 0.95 * rate * (_WARM_SECONDS + _WATCH_SECONDS):
        report.loud("the publisher could not keep up: the figures are of fewer events")
    if watched.batches + watched.lost < watched.published - 2:
        report.loud(
            f"{watched.published - watched.batches - watched.lost} batches are neither heard nor lost"
        )
    report.record(Figure(f"CPU at {rate:,} KV events/s", watched.cpu_percent, "% of a core", cpu_bar))
    report.record(Figure(f"RSS at {rate:,} KV events/s", watched.rss_megabytes, "MB", BAR_RSS_MB))


def _heard(sidecar: Sidecar, publisher: Publisher, rate: int) -> Watched:
    published = 0

    def play() -> None:
        nonlocal published
        published = publisher.play(_WARM_SECONDS + _WATCH_SECONDS, rate)

    before = _counts(sidecar)
    playing = threading.Thread(target=play)
    playing.start()
    time.sleep(_WARM_SECONDS)
    cpu, rss = _while(sidecar, playing.join)
    after = before
    for _ in range(_SETTLE_TRIES):  # what a full queue dropped last is told by what comes after it
        publisher.publish(stored(1))
        published += 1
        time.sleep(0.5)
        after = _counts(sidecar)
        if sum(after) - sum(before) >= published - 2:  # the newest aren't in a cycle yet
            break
    return Watched(cpu, rss, after[0] - before[0], published, after[1] - before[1])


def _stands_still(sidecar: Sidecar, publisher: Publisher) -> float:
    """Its memory once it goes on: what came meanwhile waits in the publisher, not here."""
    playing = threading.Thread(target=publisher.play, args=(_STILL_SECONDS + 3.0, FLOOD))
    playing.start()
    time.sleep(1.0)
    os.kill(sidecar.process.pid, signal.SIGSTOP)
    time.sleep(_STILL_SECONDS)
    os.kill(sidecar.process.pid, signal.SIGCONT)
    return _while(sidecar, playing.join)[1]


def _while(sidecar: Sidecar, wait: Callable[[], None]) -> tuple[float, float]:
    """CPU in percent of a core and the largest RSS in MB while something goes on."""
    usages: list[Usage] = [usage(sidecar.process.pid)]
    waiting = threading.Thread(target=wait)
    waiting.start()
    while waiting.is_alive():
        waiting.join(0.5)
        usages.append(usage(sidecar.process.pid))
    return usages[-1].cpu_share_since(usages[0]), max(each.rss_megabytes for each in usages)


def _counts(sidecar: Sidecar) -> tuple[int, int]:
    """Batches heard and lost so far."""
    found = {"thrashold_kv_event_batches_total{": 0, "thrashold_kv_event_batches_lost_total{": 0}
    for line in sidecar.get("/metrics").text.splitlines():
        for name in found:
            if line.startswith(name):
                found[name] = int(float(line.rpartition(" ")[2]))
    heard, lost = found.values()
    return heard, lost


if __name__ == "__main__":
    report.standalone(main)
