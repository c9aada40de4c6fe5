"""What a Prometheus would have kept of sidecars, as OpenMetrics for ``promtool tsdb create-blocks-from``.

Filled from snapshots, or from the OpenMetrics of a drill or a recording; several clusters in one file.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from exporter.catalogue import SIGNALS
from exporter.signal import PEAK_SECONDS, PEAK_SUFFIX
from exporter.snapshot import Snapshot

_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: (\S+))?$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_UNESCAPE = re.compile(r'\\[\\"n]')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
_PEAKED = {signal.full_name for signal in SIGNALS if signal.peak}
Points = list[tuple[float, float]]


class Scraped:
    """Series by name and by labels, each a list of (seconds since the epoch, value) in order."""

    def __init__(self) -> None:
        self.series: dict[str, dict[str, Points]] = defaultdict(lambda: defaultdict(list))

    def add_snapshot(self, snapshot: Snapshot, at: float, /, **labels: str) -> None:
        """One scrape of what a cycle gave."""
        for signal, own, number, is_peak in snapshot.values:
            name = signal.full_name + (PEAK_SUFFIX if is_peak else "")
            self.add(name, at, number, **dict(zip(signal.label_names, own, strict=True)), **labels)

    def add(self, family: str, when: float, number: float, /, **labels: str) -> None:
        """One value."""
        self.series[family][_joined("", labels)].append((when, number))

    def add_recording(self, file: Path, every: float, until: float | None = None, **labels: str) -> None:
        """An OpenMetrics dump as if scraped every so many seconds; peak twins, which no recording has, are made."""
        with file.open(encoding="utf-8") as lines:
            points: dict[tuple[str, str], Points] = defaultdict(list)
            for name, own, value, at in _values(lines):
                if until is None or at <= until:
                    points[name, own].append((at, value))
        for (name, own), found in points.items():
            key = _joined(own, labels)
            self.series[name][key] += _thinned(found, every)
            if name in _PEAKED:
                self.series[name + PEAK_SUFFIX][key] += _thinned(_peaks(found), every)

    def span(self) -> tuple[float, float]:
        """The first and the last instant."""
        ends = [
            (points[0][0], points[-1][0])
            for family in self.series.values()
            for points in family.values()
            if points
        ]
        return min(first for first, _ in ends), max(last for _, last in ends)

    def write(self, file: Path) -> None:
        """All of it, family by family."""
        with file.open("w", encoding="utf-8") as out:
            for name, family in sorted(self.series.items()):
                kind, head = (
                    ("counter", name.removesuffix("_total")) if name.endswith("_total") else ("gauge", name)
                )
                out.write(f"# TYPE {head} {kind}\n")
                for labels, points in family.items():
                    out.writelines(f"{name}{{{labels}}} {value!r} {at:.3f}\n" for at, value in points)
            out.write("# EOF\n")


def labels_of(text: str) -> dict[str, str]:
    """Labels as they are kept, apart."""
    return {
        name: _UNESCAPE.sub(lambda found: _ESCAPES[found[0]], value) for name, value in _LABEL.findall(text)
    }


def _values(lines: Iterable[str]) -> Iterator[tuple[str, str, float, float]]:
    for line in lines:
        if line.startswith("#"):
            continue
        found = _LINE.match(line.rstrip("\n"))
        if found is not None:
            name, labels, value, at = found.groups()
            yield name, labels or "", float(value), float(at or 0)


def _joined(own: str, labels: dict[str, str]) -> str:
    more = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items()))
    return ",".join(part for part in (own.rstrip(","), more) if part)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _thinned(points: Points, every: float) -> Points:
    kept: Points = []
    for at, value in points:
        if not kept or at - kept[-1][0] >= every - 1e-3:
            kept.append((at, value))
    return kept


def _peaks(points: Points) -> Points:
    """The largest of the trailing minute at each instant."""
    window: deque[tuple[float, float]] = deque()
    found: Points = []
    for at, value in points:
        while window and window[-1][1] <= value:
            window.pop()
        window.append((at, value))
        while window[0][0] <= at - PEAK_SECONDS:
            window.popleft()
        found.append((at, window[0][1]))
    return found
