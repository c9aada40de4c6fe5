"""What a fleet's Prometheus holds of its workers: real pages of the sidecar, played again under other names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exporter.signal import PEAK_SUFFIX, Kind
from exporter.snapshot import Value
from tests.bench.bench_cycle import Cycle
from tests.bench.replay import Replay
from tests.support.captures import recording
from tests.support.remote_write import samples

SCRAPE_SECONDS = 15
GPUS = 8
_CAPTURE = "vllm-0.32.0"
_FILL_SECONDS, _PAGES = 320, 16
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_READ = re.compile(r"(?<![:\w])(thrashold_\w+)(?:\{[^}]*\})?(?:\[(\d+)([smhd])\])?(?: offset (\d+)([smhd]))?")
_INSTANT_SECONDS = 300
_SHIFTS = range(0, SCRAPE_SECONDS * 1000, 1009)
"""Milliseconds by which workers are scraped one after the other."""
_CYCLES_NAME = "bench"
"""That ``Cycle`` gives its engine."""


def read_seconds(expressions: str) -> dict[str, int]:
    """How far back each scraped series is read, by name."""
    found: dict[str, int] = {}
    for name, window, unit, offset, offset_unit in _READ.findall(expressions):
        back = int(window) * _UNITS[unit] if window else _INSTANT_SECONDS
        back += int(offset) * _UNITS[offset_unit] if offset else 0
        found[name] = max(found.get(name, 0), back)
    return found


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages of one worker a scrape apart: of each series its labels, and its value on each page."""

    series: Mapping[tuple[str, tuple[tuple[str, str], ...]], tuple[Kind, tuple[float, ...]]]

    @classmethod
    def of(cls, phase: str) -> Pages:
        """Of one engine on eight GPUs in a ``phase`` of a recording, once the sidecar's windows are full."""
        bodies = [body for entry, body in recording(_CAPTURE).scrapes() if entry["phase"] == phase]
        cycle = Cycle.over(Replay.of(bodies, phase), GPUS)
        values: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Kind, list[float]]] = {}
        for second in range(_FILL_SECONDS + _PAGES * SCRAPE_SECONDS):
            cycle.run()
            if second >= _FILL_SECONDS and second % SCRAPE_SECONDS == 0 and cycle.snapshot is not None:
                for value in cycle.snapshot.values:
                    values.setdefault(_key(value), (value.signal.kind, []))[1].append(value.value)
        always = {key: each for key, each in values.items() if len(each[1]) == _PAGES}
        return cls({key: (kind, tuple(each)) for key, (kind, each) in always.items()})

    def histories(self, newest: int, back: Mapping[str, int]) -> Histories:
        """What Prometheus has of such a worker at ``newest`` (ms), of the names in ``back``, so many seconds each."""
        made = []
        for (name, labels), (kind, values) in self.series.items():
            if name in back:
                count = back[name] // SCRAPE_SECONDS + 2
                times = newest - SCRAPE_SECONDS * 1000 * np.arange(count - 1, -1, -1, dtype=np.int64)
                played = _played(kind, values, count)
                shifted = tuple(samples(times - shift, played) for shift in _SHIFTS)
                made.append(({"__name__": name, **dict(labels)}, shifted))
        return Histories(tuple(made))


@dataclass(frozen=True, slots=True)
class Histories:
    """Of each series of a worker its labels, and its samples for each instant at which a worker may be scraped."""

    series: tuple[tuple[Mapping[str, str], tuple[bytes, ...]], ...]

    def worker(self, number: int, clusters: int) -> Iterator[tuple[Mapping[str, str], bytes]]:
        """Under the names of one worker."""
        own = labels_of(number, clusters, ("instance",)) | {"job": "thrashold"}
        name = f"worker-{number}"
        for labels, shifted in self.series:
            varied = {label: name if value == _CYCLES_NAME else value for label, value in labels.items()}
            if "uuid" in varied:
                varied["uuid"] += f"-{number}"
            yield {**varied, **own}, shifted[number % len(shifted)]


def labels_of(number: int, clusters: int, names: Sequence[str], gpu: int = 0) -> dict[str, str]:
    """Those of one worker or one GPU of it: its cluster's, and those of ``names``."""
    every = {
        "instance": f"10.0.{number >> 8}.{number & 255}:9807",
        "engine": f"worker-{number}",
        "rank": "0",
        "model_name": "m",
        "uuid": f"GPU-{gpu}-{number}",
    }
    return {"cluster": f"cluster-{number % clusters}", **{name: every[name] for name in names}}


def _key(value: Value) -> tuple[str, tuple[tuple[str, str], ...]]:
    name = value.signal.full_name + (PEAK_SUFFIX if value.is_peak else "")
    return name, tuple(zip(value.signal.label_names, value.labels, strict=True))


def _played(kind: Kind, values: tuple[float, ...], count: int) -> np.ndarray:
    """Over and over; a counter goes on rising."""
    told = np.asarray(values)
    laps, places = np.divmod(np.arange(count), len(told))
    rise = (told[-1] - told[0]) * len(told) / (len(told) - 1) if kind is Kind.COUNTER else 0.0
    return told[places] + laps * rise
