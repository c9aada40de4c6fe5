"""What a report takes: an hour of one worker, from its recording to the files.

The worker is the replay of a real engine with eight restless GPUs, from a recorder's file; and an engine of the
drill's incident, which comes again and again for an hour, without the reading.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path

import numpy as np

from analysis.analyze import PAGE, write
from analysis.frame import Frame
from analysis.history.history import History
from analysis.history.reading import read
from analysis.report.build import report as build
from exporter.recorder_writer import RecordingWriter, Retention
from tests.bench import report
from tests.bench.report import Figure
from tests.bench.restless_gpus import node_snapshots
from tests.evaluation.playing import Case, play

BAR_SECONDS = 5.0
BAR_MEGABYTES = 2.0
_START = 1_800_000_000.0
_GPUS = 8
_HOUR = 3600
_EVERYTHING = Retention(keep_seconds=float(2**31), max_bytes=2**40)


def _recorded(path: Path) -> None:
    with contextlib.closing(RecordingWriter(path, _EVERYTHING)) as writer:
        for snapshot in node_snapshots(_HOUR, _GPUS, _START):
            writer.write(snapshot)


def _timed(name: str, source: str, folder: Path) -> None:
    began, cpu = time.monotonic(), time.process_time()
    history = read(source)
    made = build(history)
    files = write(folder, history, made)
    used = time.process_time() - cpu
    frame = history.frame
    report.line(
        f"  {name}: {len(frame)} s of {len(frame.keys)} series, {len(made.episodes)} incidents,"
        f" {time.monotonic() - began:.1f} s by the clock"
    )
    size = next(each.stat().st_size for each in files if each.name == PAGE)
    report.record(Figure(f"report, {name}, CPU", used, "s", BAR_SECONDS))
    report.record(Figure(f"report, {name}, page", size / 1e6, "MB", BAR_MEGABYTES))


def _hour_of_one_engine(folder: Path) -> None:
    """One engine of the drill's incident, repeated, with its counters beginning anew."""
    whole = read(str(play(Case("incident")).recording)).frame
    one = [place for place, key in enumerate(whole.keys) if key.label("engine") in {"", "engine-0"}]
    part = whole.take(one)
    times = _HOUR // len(part)
    values = np.tile(part.values, (times, 1))
    frame = Frame(part.start + np.arange(float(len(values))), 1.0, part.keys, values)
    history = History(frame, "an hour")
    cpu = time.process_time()
    made = build(history)
    files = write(folder, history, made)
    used = time.process_time() - cpu
    report.line(f"  incidents: {len(frame)} s of {len(frame.keys)} series, {len(made.episodes)} incidents")
    size = next(each.stat().st_size for each in files if each.name == PAGE)
    report.record(Figure("report, an hour with incidents, CPU", used, "s", BAR_SECONDS))
    report.record(Figure("report, an hour with incidents, page", size / 1e6, "MB", BAR_MEGABYTES))


def main() -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _recorded(folder / "recording.db")
        _timed("an hour of one worker", str(folder / "recording.db"), folder / "hour")
        _hour_of_one_engine(folder / "incidents")


if __name__ == "__main__":
    report.standalone(main)
