"""What the running sidecar costs, beside other monitors that read the same engine in the same minutes.

The engine is a replay, 59 kB a scrape. Everybody reads it once a second; the sidecar is scraped as
Prometheus would. Memory and CPU are taken after a minute, when the fine part of the window is full;
the coarse part, full after five and a half, adds some 0.7 MB to the memory and nothing to be seen to the CPU.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import peers, report
from tests.bench.processes import InTerminal, Usage, best_seconds, usage
from tests.bench.report import Figure
from tests.bench.stage import Engine, Prometheus, engine, sidecar
from tests.support.processes import end

BAR_RSS_MB = 45.0
BAR_CPU_PERCENT = 1.0
BAR_HELP_SECONDS = 0.3
BAR_END_SECONDS = 1.0

_CAPTURE = "vllm-0.32.0"
_WARM_SECONDS = 60.0
_SLICES, _SLICE_SECONDS = 6, 10.0


@dataclass(slots=True)
class Watched:
    """One monitor under watch: what it used when the watch began, and at the end of each slice."""

    name: str
    pid: int
    port: int
    usages: list[Usage] = field(default_factory=list)
    reads: int = 0
    ended: bool = False

    def look(self) -> None:
        """Take one more usage."""
        try:
            self.usages.append(usage(self.pid))
        except (OSError, KeyError):  # one that has just ended has no memory to tell of
            self.ended = True

    @property
    def rss(self) -> float:
        """Its memory in MB, the largest seen."""
        return max(each.rss_megabytes for each in self.usages)

    @property
    def cpu(self) -> float:
        """Its CPU over all slices, in percent of a core."""
        return self.usages[-1].cpu_share_since(self.usages[0])

    def record(self, *, rss_bar: float | None = None, cpu_bar: float | None = None) -> None:
        """Record the figures."""
        seconds = self.usages[-1].at - self.usages[0].at
        shares = [after.cpu_share_since(before) for before, after in itertools.pairwise(self.usages)]
        report.line(
            f"  {self.name}: {self.reads / seconds:.2f} reads a second,"
            f" {self.cpu * 10 * seconds / self.reads:.1f} ms of CPU a read;"
            f" {min(shares):.2f} to {max(shares):.2f} % of a core in slices of {_SLICE_SECONDS:.0f} s"
        )
        report.record(Figure(f"{self.name} RSS", self.rss, "MB", rss_bar))
        report.record(Figure(f"{self.name} PSS", max(each.pss_megabytes for each in self.usages), "MB"))
        report.record(Figure(f"{self.name} CPU", self.cpu, "% of a core", cpu_bar))


def _started_peers(stack: ExitStack, ports: list[int], folder: Path) -> list[tuple[Watched, InTerminal]]:
    started = []
    for peer, port in zip(peers.installed(), ports, strict=False):
        home = folder / peer.name
        home.mkdir()
        try:
            terminal = peer.start(port, home)
        except OSError as error:
            report.loud(f"peer {peer.name} does not start: {error}")
            continue
        stack.callback(terminal.end)
        started.append((Watched(peer.name, terminal.process.pid, port), terminal))
    return started


def _watch(watched: list[Watched], source: Engine) -> None:
    """All at the same time, so that a busy machine slows all alike."""
    time.sleep(_WARM_SECONDS)
    before = source.reads()
    for each in watched:
        each.look()
    for _ in range(_SLICES):
        time.sleep(_SLICE_SECONDS)
        for each in watched:
            each.look()
    after = source.reads()
    for each in watched:
        each.reads = after.get(each.port, 0) - before.get(each.port, 0)


def _tell(ours: Watched, others: list[tuple[Watched, InTerminal]]) -> None:
    if ours.ended or not ours.reads:
        raise RuntimeError("the sidecar ended on its own, or does not read its engine")
    ours.record(rss_bar=BAR_RSS_MB, cpu_bar=BAR_CPU_PERCENT)
    for each, terminal in others:
        if each.ended:
            report.loud(f"peer {each.name} ended on its own: {terminal.last_words()}")
        elif not each.reads:
            report.loud(f"peer {each.name} runs but does not read the engine: {terminal.last_words()}")
        else:
            each.record()
            cpu = each.cpu / ours.cpu if ours.cpu else float("inf")
            report.line(
                f"  {each.name} beside ours: {each.rss / ours.rss:.1f}x the memory, {cpu:.1f}x the CPU"
            )


def main() -> None:
    """Prints the figures."""
    if not Path("/proc/self/smaps_rollup").exists():
        report.loud("the sidecar is not measured: this needs Linux's /proc")
        return
    command = [sys.executable, "-m", "thrashold"]
    seconds = best_seconds([*command, "--help"], 5)
    report.record(Figure("thrashold --help, best of 5", seconds, "s", BAR_HELP_SECONDS))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source = stack.enter_context(engine(_CAPTURE, 1 + len(peers.PEERS)))
        report.line(f"  the engine: {source.told}")
        port, *ports = source.ports
        others = _started_peers(stack, ports, folder)
        running = stack.enter_context(sidecar(command, port, folder))
        report.record(Figure("start to first answer", running.start_seconds, "s"))
        prometheus = stack.enter_context(Prometheus(running.port))
        ours = Watched("sidecar", running.process.pid, port)
        _watch([ours, *(each for each, _ in others)], source)
        _tell(ours, others)
        report.line(f"  scraped {prometheus.scrapes} times, {len(prometheus.newest)} values the last time")
        if not prometheus.saw_engine:
            report.loud("the sidecar did not read its engine: its figures are of too little work")
        # while the scraper's connection is still open, as in life
        report.record(Figure("SIGTERM to exit", end(running.process), "s", BAR_END_SECONDS))
        if running.process.returncode != 0:
            report.loud(f"the sidecar ended with {running.process.returncode}")
        errors = [each for each in running.log.read_text(encoding="utf-8").splitlines() if " ERROR " in each]
        if errors:
            report.loud(f"the sidecar logged {len(errors)} errors; the first: {errors[0]}")


if __name__ == "__main__":
    report.standalone(main)
