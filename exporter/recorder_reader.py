"""Reads a recording, also while it is written: series as arrays of times and values."""

from __future__ import annotations

import json
import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from exporter.recorder_file import RecordingError, open_for_reading
from exporter.recorder_format import Chunk, Column, FormatError, decode_chunk, decode_tick
from exporter.signal import Kind


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a recording, under its name as it is scraped.

    ``times`` are seconds since the epoch, rising, exact to the millisecond; ``values`` has as many.
    A cycle without a value has no time either: what is missing is unknown. Gauges are rounded to
    float32 (typecode f), counters are exact (d). Series may share an array of times: don't change it.
    """

    name: str
    kind: Kind
    labels: Mapping[str, str]
    times: array[float]
    values: array[float]


class Family(NamedTuple):
    """A signal that a recording knows, and its series: their labels by number, in order of the labels."""

    name: str
    kind: Kind
    help: str
    series: Mapping[int, Mapping[str, str]]


class Recording:
    """A recording as it stands at one instant; a context manager.

    What the writer adds meanwhile is not seen, and waits in the write-ahead log: don't keep it open
    for hours. Making one raises RecordingError, as do all methods where the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = open_for_reading(path)
        try:
            self._connection.execute("BEGIN")
            self._execute("SELECT count(*) FROM signal")  # the instant is that of the first read
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def families(self, names: Collection[str] | None = None) -> list[Family]:
        """All signals by name, or those of ``names`` (as they are scraped)."""
        found: dict[str, Family] = {}
        series: dict[int, Mapping[str, str]] = {}
        for name, kind, text, number, labels in self._execute(
            "SELECT name, kind, help, id, labels FROM signal JOIN series ON series.signal = signal.name"
            " ORDER BY name, labels"
        ):
            if names is None or name in names:
                if name not in found:
                    series = {}
                    found[name] = Family(name, Kind(kind), text, series)
                series[number] = json.loads(labels)
        return list(found.values())

    def cycles(self, start: float | None = None, end: float | None = None) -> int:
        """How many cycles are recorded; within a range, up to a minute's more at either side."""
        first, last = _milliseconds(start, end)
        rows = self._execute(
            "SELECT (SELECT coalesce(sum(ticks), 0) FROM chunk WHERE last >= ?1 AND start <= ?2)"
            " + (SELECT count(*) FROM tick WHERE at >= ?1 AND at <= ?2)",
            (first, last),
        )
        return int(rows[0][0])

    def span(self) -> tuple[float, float] | None:
        """When the first and the last cycle were; None where there is none."""
        rows = self._execute(
            "SELECT min(first), max(last) FROM (SELECT min(start) AS first, max(last) AS last FROM chunk"
            " UNION ALL SELECT min(at), max(at) FROM tick)"
        )
        first, last = rows[0]
        return None if first is None else (first / 1000, last / 1000)

    def times(self) -> array[float]:
        """When each cycle was, in seconds since the epoch, rising."""
        times = array("d")
        for chunk in self._chunks(None, None, ()):
            times.extend(chunk.times)
        return array("d", sorted(set(times)))

    def read(
        self, start: float | None = None, end: float | None = None, names: Collection[str] | None = None
    ) -> Iterator[Series]:
        """Read what was recorded from ``start`` to before ``end``, in seconds since the epoch.

        Gives the series that have any value then, of the signals ``names`` (as they are scraped)
        where given, by name and labels. All of them are in memory before the first one comes, 4 bytes a value of a
        gauge and 8 of a counter; 8 more where a series lacks some cycles.
        """
        families = self.families(names)
        found = self.values({number for family in families for number in family.series}, start, end)
        return _series(families, found)

    def values(
        self, wanted: Collection[int], start: float | None = None, end: float | None = None
    ) -> dict[int, tuple[array[float], array[float]]]:
        """Read times and values of the series ``wanted``, by their numbers, those that have any."""
        found: dict[int, _Gathered] = {}
        all_times = array("d")
        in_order = True
        for whole in self._chunks(start, end, wanted):
            chunk = _cut(whole, start, end)
            if not chunk.times:
                continue
            last = all_times[-1] if all_times else float("-inf")
            in_order = in_order and chunk.times[0] > last and all(a < b for a, b in pairwise(chunk.times))
            for number, column in chunk.columns.items():
                if number in wanted and column.values:
                    found.setdefault(number, _Gathered(all_times)).take(chunk.times, column)
            all_times.extend(chunk.times)
        every = {number: (each.times(), each.values) for number, each in found.items()}
        return every if in_order else {number: _ordered(*each) for number, each in every.items()}

    def _chunks(self, start: float | None, end: float | None, wanted: Collection[int]) -> Iterator[Chunk]:
        """Decode the chunks of that time, then the ticks, each as a chunk of its own."""
        first, last = _milliseconds(start, end)
        query = "SELECT start, data FROM chunk WHERE last >= ? AND start <= ? ORDER BY start, id"
        ticks = "SELECT at, data FROM tick WHERE at >= ? AND at <= ? ORDER BY at, id"
        try:
            for begin, data in self._connection.execute(query, (first, last)):
                yield decode_chunk(begin, data, wanted)
            for at, data in self._connection.execute(ticks, (first, last)):
                tick = decode_tick(at, data)
                columns = {
                    number: Column(None, array(typecode, (value,)))
                    for typecode, values in (("f", tick.gauges), ("d", tick.counters))
                    for number, value in values.items()
                }
                yield Chunk(array("d", (at / 1000,)), columns)
        except (FormatError, sqlite3.Error) as error:
            raise RecordingError(f"{self.path}: is damaged: {error}") from error

    def _execute(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise RecordingError(f"{self.path}: can't be read: {error}") from error


class _Gathered:
    """One series so far. As long as it has a value in every cycle, its times are those of all, ``all_times``."""

    def __init__(self, all_times: array[float]) -> None:
        self.values: array[float] = array("f")
        self._all_times = all_times
        self._own_times: array[float] | None = None

    def take(self, times: array[float], column: Column) -> None:
        """Go on with a chunk of which ``all_times`` doesn't know yet."""
        places, values = column
        if self._own_times is None and (places is not None or len(self.values) < len(self._all_times)):
            self._own_times = self._all_times[: len(self.values)]
        if self._own_times is not None:
            self._own_times.extend(times if places is None else [times[each] for each in places])
        if values.typecode == "d" != self.values.typecode:  # a counter, or what a later version made one
            self.values = array("d", self.values)
        self.values.extend(values if values.typecode == self.values.typecode else array("d", values))

    def times(self) -> array[float]:
        """When its values were."""
        if self._own_times is not None:
            return self._own_times
        shared = len(self.values) == len(self._all_times)
        return self._all_times if shared else self._all_times[: len(self.values)]


def read(
    path: Path,
    start: float | None = None,
    end: float | None = None,
    names: Collection[str] | None = None,
) -> Iterator[Series]:
    """Read series of the recording at ``path`` as it stands now, see ``Recording.read``.

    The file is read and closed before this returns. Raises RecordingError.
    """
    with Recording(path) as recording:
        return recording.read(start, end, names)


def _series(
    families: Iterable[Family], found: dict[int, tuple[array[float], array[float]]]
) -> Iterator[Series]:
    for family in families:
        for number, labels in family.series.items():
            if number in found:
                yield Series(family.name, family.kind, labels, *found.pop(number))


def _milliseconds(start: float | None, end: float | None) -> tuple[int, int]:
    """A range in the file's unit that leaves nothing out; what it has too much is cut off later."""
    first = -(1 << 62) if start is None else int(start * 1000) - 1
    last = 1 << 62 if end is None else int(end * 1000) + 1
    return first, last


def _cut(chunk: Chunk, start: float | None, end: float | None) -> Chunk:
    """The part of ``chunk`` from ``start`` to before ``end``."""
    first = 0 if start is None else bisect_left(chunk.times, start)
    stop = len(chunk.times) if end is None else bisect_left(chunk.times, end)
    if first == 0 and stop == len(chunk.times):
        return chunk
    columns = {}
    for number, (places, values) in chunk.columns.items():
        if places is None:
            columns[number] = Column(None, values[first:stop])
        else:
            left, right = bisect_left(places, first), bisect_left(places, stop)
            columns[number] = Column(tuple(each - first for each in places[left:right]), values[left:right])
    return Chunk(chunk.times[first:stop], columns)


def _ordered(times: array[float], values: array[float]) -> tuple[array[float], array[float]]:
    """In order of time, where a wall clock was set back; of two values at one time the later written."""
    last = dict(zip(times, values, strict=True))
    ordered = sorted(last)
    return array("d", ordered), array("d", [last[each] for each in ordered])
