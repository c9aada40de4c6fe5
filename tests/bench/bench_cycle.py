"""What one cycle costs, from the bytes of a scrape to the rendered ``/metrics``, in CPU time.

Taken on a full window: most derivations look back over it, so an empty one flatters. Each figure is
that of the round, of a few, that the machine disturbed least. The bar is that of one engine; two
ranks are twice the work. The bar holds for one engine on eight GPUs too, each of which tells all there is. Pages
of engines other than vLLM are short or written: they are filled up to the size of vLLM's with series that nobody reads.
"""

from __future__ import annotations

import gc
import itertools
import time
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from exporter.cycle import CycleSettings, State, initial, step
from exporter.dialects.dialect import Dialect
from exporter.exposition import Reader
from exporter.observation import Observation, SourceStatus
from exporter.render import PLAIN, Rendering
from exporter.sidecar import COLLECT_EVERY
from exporter.snapshot import Snapshot
from exporter.window import HORIZON_SECONDS
from tests.bench import report
from tests.bench.replay import Replay, filled, replay
from tests.support.gpus import h100
from tests.support.pages import dialect_of

BAR_MS = 3.0
ONE_ENGINE = "59 kB"
TWO_RANKS = "80 kB, 2 ranks"
EIGHT_GPUS = "59 kB, 8 GPUs"
PAGE_BYTES = 60_000
OTHERS = ("sglang", "trtllm", "tgi", "llamacpp-2026.10.11549", "dynamo-frontend")
_FILL = int(HORIZON_SECONDS) + 10
_ROUNDS, _MEASURED = 4, 200
_START = 1_800_000_000.0
_PARTS = ("read", "dialect", "step", "render", "gzip")


@dataclass(slots=True)
class Cycle:
    """The sidecar's cycle without its loop and its sockets: one engine, and any GPUs, read each second."""

    replay: Replay
    dialect: Dialect[Any]
    reader: Reader[Any]
    state: State
    gpus: int = 0
    second: int = 0
    failures: int = 0
    snapshot: Snapshot | None = None

    @classmethod
    def over(cls, scrapes: Replay, gpus: int = 0) -> Cycle:
        """A fresh one that reads ``scrapes`` and has so many GPUs."""
        dialect = dialect_of(scrapes.body(0))
        return cls(scrapes, dialect, Reader(dialect.interpret), initial(CycleSettings(version="bench")), gpus)

    def _observed_gpus(self, at: float) -> list[Observation]:
        """Their newest samples, each with traffic of its own. What makes them is not the cycle's cost."""
        if not self.gpus:
            return []
        moved = 1.0e9 * self.second
        samples = tuple(
            h100(
                at + 0.05,
                index,
                bytes_in=moved * (1 + index),
                bytes_out=moved,
                nvlink_bytes=7 * moved,
                sm_active=0.1,
            )
            for index in range(self.gpus)
        )
        return [Observation(SourceStatus("nvml", "nvml", True, at, 0.001), gpus=samples)]

    def run(self) -> list[float]:
        """One cycle; the CPU milliseconds of each part."""
        body = self.replay.body(self.second)
        at = _START + self.second
        gpus = self._observed_gpus(at)
        self.second += 1
        clock = time.process_time
        times = [clock()]
        readings = self.reader.read(body)
        times.append(clock())
        sample = self.dialect.sample(readings, engine="bench", at=at, read_seconds=0.01)
        times.append(clock())
        status = SourceStatus("bench", "engine", answering=True, last_at=at, read_seconds=0.01)
        self.state, snapshot = step(self.state, at + 0.1, [Observation(status, sample), *gpus])
        times.append(clock())
        rendering = Rendering(snapshot)
        rendering.body(PLAIN)
        times.append(clock())
        rendering.body(PLAIN, zipped=True)
        times.append(clock())
        self.failures += len(snapshot.failures)
        self.snapshot = snapshot
        return [(end - begin) * 1e3 for begin, end in itertools.pairwise(times)]


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def _figures(name: str, rounds: list[list[list[float]]], bar: float | None) -> None:
    """Lines for the parts, figures for their sum; gzip is not in it: Prometheus asks less than once a cycle."""
    calm = min(rounds, key=lambda cycles: sum(map(sum, cycles)))
    for part, values in zip(_PARTS, zip(*calm, strict=True), strict=True):
        aside = ", not part of the cycle" if part == "gzip" else ""
        report.line(
            f"  {name} {part}: median {median(values):.3f} ms, p99 {_p99(list(values)):.3f} ms{aside}"
        )
    totals = [[sum(parts[:-1]) for parts in cycles] for cycles in rounds]
    best = f"best of {len(rounds)} rounds"
    report.record(report.Figure(f"cycle {name}, median, {best}", min(map(median, totals)), "ms", bar))
    worst = [_p99(each) for each in totals]
    report.line(f"  cycle {name}, p99 of each round: {', '.join(f'{each:.2f}' for each in worst)} ms")
    report.record(report.Figure(f"cycle {name}, p99, {best}", min(worst), "ms", bar))


def _window_megabytes(scrapes: Replay, gpus: int) -> float:
    """What a filled state, reader included, holds in memory."""
    scrapes.body(0)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        cycle = Cycle.over(scrapes, gpus)
        for _ in range(_FILL):
            cycle.run()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / 1e6


def main() -> None:
    """Prints the figures."""
    one = replay("vllm-0.32.0")
    captures = {
        ONE_ENGINE: (one, 0),
        TWO_RANKS: (replay("vllm-0.32.0-dp2-api2"), 0),
        EIGHT_GPUS: (one, 8),
    }
    _measure(captures)
    # one by one: beside many others each would be measured with the processor's caches full of theirs
    for engine in OTHERS:
        _measure({f"{engine}, 60 kB": (filled(engine, PAGE_BYTES), 0)})
    for name, (scrapes, gpus) in captures.items():
        report.record(report.Figure(f"full window in memory, {name}", _window_megabytes(scrapes, gpus), "MB"))


def _measure(measured: Mapping[str, tuple[Replay, int]]) -> None:
    """Records what a cycle of each takes."""
    gc.collect()
    gc.freeze()  # the sidecar's collector has no replay to walk through
    gc.set_threshold(COLLECT_EVERY, *gc.get_threshold()[1:])
    cycles = {name: Cycle.over(scrapes, gpus) for name, (scrapes, gpus) in measured.items()}
    for name, cycle in cycles.items():
        report.line(f"  {name}: {cycle.replay.told}; the window filled with {_FILL} s of it")
        for _ in range(_FILL):
            cycle.run()
    rounds: dict[str, list[list[list[float]]]] = {name: [] for name in cycles}
    for _ in range(_ROUNDS):
        for taken in rounds.values():
            taken.append([])
        for _ in range(_MEASURED):  # interleaved, so that a busy machine slows both alike
            for name, cycle in cycles.items():
                rounds[name][-1].append(cycle.run())
    for name, cycle in cycles.items():
        if cycle.failures:
            report.loud(f"{name}: {cycle.failures} derivations broke off: the figures are of less work")
        values = len(cycle.snapshot.values) if cycle.snapshot else 0
        report.line(f"  {name}: {values} values a cycle")
        _figures(name, rounds[name], None if name == TWO_RANKS else BAR_MS)


if __name__ == "__main__":
    report.standalone(main)
