"""Histories for tests of causes: real recordings through the sidecar's cycle, runs of the drill, and made-up series."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from analysis.cascade.subject import Where
from analysis.frame import Frame, Key, Values
from analysis.history.recorded import recorded
from drill.scenarios.setting import Setting
from exporter.derive.phenomenon import EngineFacts
from exporter.recorder_writer import RecordingWriter, Retention
from exporter.signal import Signal
from tests.evaluation.playing import Case, Run, play
from tests.support.replay import cycles

START = 1_800_000_000.0
ENGINE = (("engine", "worker-1"), ("rank", "0"))
_EVERYTHING = Retention(keep_seconds=float(2**31), max_bytes=2**40)


@lru_cache(maxsize=8)
def captured(name: str, step_seconds: float) -> Frame:
    """A recording of a real engine as its sidecar would have kept it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.db"
        with contextlib.closing(RecordingWriter(path, _EVERYTHING)) as writer:
            for cycle in cycles(name, EngineFacts()):
                writer.write(cycle.snapshot)
        return recorded(path, step_seconds=step_seconds).frame


@lru_cache(maxsize=4)
def drilled(scenario: str, *others: str, engines: int | None = None) -> Run:
    """A small run of the drill, kept as those of the evaluation are."""
    return play(Case(scenario, Setting(seed=1, engines=engines), others))


def made_up(series: Mapping[tuple[Signal, Where], Values], step_seconds: float = 1.0) -> Frame:
    """Series of one rank of an engine, or of what their labels say."""
    count = len(next(iter(series.values())))
    keys = tuple(Key.of(signal.full_name, dict(ENGINE) | dict(where)) for signal, where in series)
    times = START + np.arange(count) * step_seconds
    return Frame(times, step_seconds, keys, np.column_stack(list(series.values())))
