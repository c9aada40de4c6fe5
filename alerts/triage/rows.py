"""Values of signals at one moment, as a cycle of our own made them or as a sidecar's page tells them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.catalogue import SIGNALS
from exporter.exposition import Reader, Series
from exporter.signal import PEAK_SUFFIX, PREFIX, Signal
from exporter.snapshot import Snapshot


class Name(NamedTuple):
    """What a series is of: a signal, or its twin that holds the maximum of the trailing minute."""

    signal: Signal
    is_peak: bool


class Row(NamedTuple):
    """One series: ``labels`` in the order of the signal's ``label_names``."""

    labels: tuple[str, ...]
    value: float


def _names() -> Iterator[tuple[str, Name]]:
    for signal in SIGNALS:
        yield signal.full_name, Name(signal, is_peak=False)
        if signal.peak:
            yield signal.full_name + PEAK_SUFFIX, Name(signal, is_peak=True)


_NAMES = dict(_names())


@dataclass(frozen=True, slots=True)
class Rows:
    """All of one moment, ``at`` in seconds of one clock for all moments of a look."""

    at: float
    rows: Mapping[Name, tuple[Row, ...]] = field(default_factory=dict)

    def of(self, signal: Signal, *, peak: bool = False) -> tuple[Row, ...]:
        """The series of a signal; none where it is absent."""
        return self.rows.get(Name(signal, is_peak=peak), ())

    def owners(self, signal: Signal) -> tuple[str, ...]:
        """The first label of its series: of which engines, gateways, sources or GPUs it tells."""
        return tuple(dict.fromkeys(row.labels[0] for row in self.of(signal)))


def of_snapshot(snapshot: Snapshot) -> Rows:
    """The values of a cycle."""
    told = ((Name(each.signal, each.is_peak), Row(each.labels, each.value)) for each in snapshot.values)
    return Rows(snapshot.at, _gathered(told))


def of_page(body: bytes, at: float) -> Rows | None:
    """The values on a sidecar's page that was read ``at``; None where it is none.

    What this release doesn't know is left out: the sidecar may be of another one.
    """
    ours = False

    def interpret(series: Series) -> tuple[Name, tuple[str, ...]] | None:
        nonlocal ours
        ours = ours or series.name.startswith(PREFIX)
        name = _NAMES.get(series.name)
        if name is None:
            return None
        labels = dict(series.labels)
        if any(label not in labels for label in name.signal.label_names):
            return None
        return name, tuple(labels[label] for label in name.signal.label_names)

    reader: Reader[tuple[Name, tuple[str, ...]]] = Reader(interpret)
    read = reader.read(body)
    return Rows(at, _gathered((name, Row(labels, value)) for (name, labels), value in read)) if ours else None


def _gathered(told: Iterable[tuple[Name, Row]]) -> dict[Name, tuple[Row, ...]]:
    found: dict[Name, list[Row]] = {}
    for name, row in told:
        found.setdefault(name, []).append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def largest(rows: Iterable[Row], wanted: Callable[[Row], bool]) -> float | None:
    """The largest value of the series that are ``wanted``; None without any."""
    return max((row.value for row in rows if wanted(row)), default=None)
