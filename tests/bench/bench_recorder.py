"""What the flight recorder takes: bytes a day, CPU, and what a kill costs it.

An engine is the replay of a real one, busy all day; its eight GPUs are restless. All signals of the
catalogue that these have are recorded.
"""

from __future__ import annotations

import random
import resource
import sqlite3
import tempfile
import time
from pathlib import Path

from exporter.recorder import QUEUE_SIZE, Recorder
from exporter.recorder_file import size_in_bytes
from exporter.recorder_reader import read
from exporter.signal import Scope
from exporter.snapshot import Snapshot
from tests.bench import report
from tests.bench.report import Figure
from tests.bench.restless_gpus import node_snapshots
from tests.support.recorder import kill_a_writer

BAR_MEGABYTES_A_DAY = 50.0
BAR_CPU_PERCENT = 0.3
BAR_LOST_SECONDS = 2.0

_START = 1_800_000_000.0
_GPUS = 8
_SECONDS = 1200
_DAY = 86_400
_KILLS = 50
_PACED, _PACE_SECONDS = 200, 0.1


def _recorded(snapshots: list[Snapshot], path: Path) -> int:
    """Record ``snapshots`` as fast as it goes; gives the size of the file in bytes."""
    recorder = Recorder(path)
    recorder.start()
    for count, snapshot in enumerate(snapshots, start=1):
        recorder.put(snapshot)
        if count % QUEUE_SIZE == 0:
            while recorder.status.written < count:
                time.sleep(0.002)
    recorder.close(60)
    if recorder.dropped:
        report.loud(f"{recorder.dropped} cycles were dropped: the figures are of less work")
    return size_in_bytes(path)


def _cost(snapshots: list[Snapshot], path: Path) -> None:
    half = len(snapshots) // 2
    began = time.process_time()
    # what the second half adds: the newest minute, not yet folded, is there only once
    added = -_recorded(snapshots[:half], path) + _recorded(snapshots[half:], path)
    cpu = time.process_time() - began
    values = [value for value in snapshots[-1].values if not value.is_peak]
    of_gpus = sum(value.signal.scope is Scope.GPU for value in values)
    report.line(f"  {len(snapshots)} s of {len(values)} series, {of_gpus} of them of {_GPUS} GPUs")
    a_day = added / (len(snapshots) - half) * _DAY / 1e6
    report.record(Figure("recorder, a day of 8 GPUs and an engine", a_day, "MB", BAR_MEGABYTES_A_DAY))
    report.record(
        Figure("recorder CPU, back to back", 100 * cpu / len(snapshots), "% of a core", BAR_CPU_PERCENT)
    )
    began = time.process_time()
    points = sum(len(series.times) for series in read(path))
    seconds = time.process_time() - began
    report.record(Figure("recorder, reading back", points / seconds / 1e6, "million values a second"))


def _paced(path: Path) -> None:
    """The same with time to sleep in between, each cycle's snapshot just made, as in life; making it isn't counted."""
    recorder = Recorder(path)
    recorder.start()
    cpu = 0.0
    for snapshot in node_snapshots(_PACED, _GPUS, _START):
        began = time.process_time()
        recorder.put(snapshot)
        time.sleep(_PACE_SECONDS)
        cpu += time.process_time() - began
    recorder.close(60)
    report.record(Figure("recorder CPU, paced", 100 * cpu / _PACED, "% of a core", BAR_CPU_PERCENT))


def _kills(folder: Path) -> None:
    chance = random.Random(2)  # noqa: S311 -- repeatable, guards nothing
    path = folder / "killed"
    place, lost = 0, [0]
    for _ in range(_KILLS):
        said = kill_a_writer(path, place, chance)
        (series,) = read(path, names=["thrashold_generation_tokens_total"])
        lost.append(said - round(series.values[-1] / 1_000_003))
        with sqlite3.connect(path) as connection:
            found = connection.execute("PRAGMA integrity_check").fetchone()[0]
        connection.close()
        if found != "ok":
            report.loud(f"the recording is damaged after a kill: {found}")
        place = said + 1
    name = f"recorder, most lost in {_KILLS} kills"
    report.record(Figure(name, float(max(lost)), "s", BAR_LOST_SECONDS))


def main() -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as name:
        snapshots = list(node_snapshots(_SECONDS, _GPUS, _START))
        _cost(snapshots, Path(name) / "recording")
        _paced(Path(name) / "paced")
        _kills(Path(name))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report.line(f"  the benchmark itself took {memory:.0f} MiB")


if __name__ == "__main__":
    report.standalone(main)
