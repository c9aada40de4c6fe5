"""Writes a recording: ticks in, folded into chunks by the minute, the oldest chunks out."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from exporter.recorder_file import WAL_BYTES, RecordingError, open_for_writing, transaction
from exporter.recorder_format import chunk_start, decode_tick, encode_chunk, encode_tick
from exporter.signal import Kind, Signal
from exporter.snapshot import Snapshot

_LAYOUTS = 4
"""Remembered: a few signals come and go, the others stay."""
_SeriesKey = tuple[Signal, tuple[str, ...]]
_Shown = tuple[tuple[Signal, ...], tuple[tuple[str, ...], ...], tuple[bool, ...]]
"""Of each value in a cycle its signal, its labels, and whether it is a peak."""
_Numbered = tuple[list[int], list[int]]
"""Places in a cycle, and the numbers of the series that stand there."""


class _Layout(NamedTuple):
    """What a cycle shows, and where in it those values stand that are recorded."""

    shown: _Shown
    gauges: _Numbered
    counters: _Numbered


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept: the newest ``keep_seconds``, and of them what takes ``max_bytes`` on disk."""

    keep_seconds: float = 48 * 3600.0
    max_bytes: int = 256 << 20


class RecordingWriter:
    """The one writer of the recording at ``path``; any error leaves it only good for ``close``.

    Making one raises RecordingError for a file that can't be a recording of this version or that
    another process writes, OSError and sqlite3.Error where the file system can't or won't.
    """

    def __init__(self, path: Path, retention: Retention) -> None:
        self._retention = retention
        self._numbers: dict[_SeriesKey, int] = {}
        self._layouts: list[_Layout] = []
        self._lock = _locked(path)
        try:
            self.connection = open_for_writing(path)
        except BaseException:
            os.close(self._lock)
            raise
        self._minute = self._oldest_minute()

    def write(self, snapshot: Snapshot) -> None:
        """Write one cycle, durable against the death of the process when this returns.

        Peak twins are left out: they are the maxima of what stands here anyway. With the first tick
        of a minute those before become chunks. Raises OSError and sqlite3.Error.
        """
        at = round(snapshot.at * 1000)
        minute = chunk_start(at)
        if self._minute is not None and minute != self._minute:
            self._fold(minute, at)
        self._minute = minute
        with transaction(self.connection):
            gauges, counters = self._numbered(snapshot, at)
            self.connection.execute(
                "INSERT INTO tick (at, data) VALUES (?, ?)", (at, encode_tick(gauges, counters))
            )

    def close(self) -> None:
        """Close the file; it needs nothing beside it then. Raises nothing."""
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()
        # Last of all: a process that closes any descriptor of a file loses SQLite's own locks on it.
        os.close(self._lock)

    def _oldest_minute(self) -> int | None:
        oldest = self.connection.execute("SELECT min(at) FROM tick").fetchone()[0]
        return None if oldest is None else chunk_start(oldest)

    def _numbered(self, snapshot: Snapshot, at: int) -> tuple[dict[int, float], dict[int, float]]:
        """The values of gauges and of counters by number of series.

        Most cycles show what one shortly before them did, in the same order: then nothing is looked up.
        """
        if not snapshot.values:
            return {}, {}
        signals, labels, values, peaks = zip(*snapshot.values, strict=True)
        shown = (signals, labels, peaks)
        layout = next((each for each in self._layouts if each.shown == shown), None)
        if layout is None:
            layout = self._laid_out(shown, at)
            self._layouts = [layout, *self._layouts[: _LAYOUTS - 1]]
        gauges, counters = (
            dict(zip(numbers, map(values.__getitem__, places), strict=True))
            for places, numbers in (layout.gauges, layout.counters)
        )
        return gauges, counters

    def _laid_out(self, shown: _Shown, at: int) -> _Layout:
        gauges: _Numbered = [], []
        counters: _Numbered = [], []
        for place, (signal, labels, is_peak) in enumerate(zip(*shown, strict=True)):
            if not is_peak:
                number = self._numbers.get((signal, labels))
                if number is None:
                    number = self._number(signal, labels, at)
                places, numbers = counters if signal.kind is Kind.COUNTER else gauges
                places.append(place)
                numbers.append(number)
        return _Layout(shown, gauges, counters)

    def _number(self, signal: Signal, labels: tuple[str, ...], at: int) -> int:
        text = json.dumps(dict(zip(signal.label_names, labels, strict=True)), sort_keys=True)
        execute = self.connection.execute
        key = (signal.full_name, text)
        found = execute("SELECT id FROM series WHERE signal = ? AND labels = ?", key).fetchone()
        if found is None:
            execute(
                "INSERT OR REPLACE INTO signal (name, kind, help) VALUES (?, ?, ?)",
                (signal.full_name, signal.kind.value, signal.help),
            )
            number = execute(
                "INSERT INTO series (signal, labels, seen) VALUES (?, ?, ?)", (*key, at)
            ).lastrowid
        else:
            number = found[0]
            execute("UPDATE series SET seen = ? WHERE id = ?", (at, number))
        # an aborted transaction takes the number back, but with it this object ends as well
        self._numbers[signal, labels] = int(number or 0)
        return self._numbers[signal, labels]

    def _fold(self, current: int, now: int) -> None:
        """Turn all ticks of minutes other than ``current`` into chunks, and let go of what is too old."""
        with transaction(self.connection):
            # before the chunks come, so that they find room within the cap and not on top of it
            gone = self._expire(now)
            rows = self.connection.execute("SELECT id, at, data FROM tick ORDER BY at, id").fetchall()
            minutes: dict[int, list[tuple[int, int, bytes]]] = {}
            for row in rows:
                if chunk_start(row[1]) != current:
                    minutes.setdefault(chunk_start(row[1]), []).append(row)
            for start, ticks in minutes.items():
                self._fold_minute(start, ticks)
            if gone:
                self._forget_series()
        self._give_back()

    def _fold_minute(self, start: int, rows: list[tuple[int, int, bytes]]) -> None:
        ticks = [decode_tick(at, data) for _, at, data in rows]
        self.connection.executemany("DELETE FROM tick WHERE id = ?", [(row[0],) for row in rows])
        self.connection.execute(
            "INSERT INTO chunk (start, last, ticks, data) VALUES (?, ?, ?, ?)",
            (start, ticks[-1].at, len(ticks), encode_chunk(start, ticks)),
        )
        seen = set[int]().union(*(tick.gauges for tick in ticks), *(tick.counters for tick in ticks))
        self.connection.executemany(
            "UPDATE series SET seen = ? WHERE id = ?", [(ticks[-1].at, number) for number in seen]
        )

    def _expire(self, now: int) -> int:
        """Delete the chunks that are too old or beyond the cap; gives how many."""
        execute = self.connection.execute
        oldest = now - round(self._retention.keep_seconds * 1000)
        gone = execute("DELETE FROM chunk WHERE last < ?", (oldest,)).rowcount
        while self._used_bytes() > self._retention.max_bytes - WAL_BYTES:
            removed = execute(
                "DELETE FROM chunk WHERE id = (SELECT id FROM chunk ORDER BY start, id LIMIT 1)"
            )
            if not removed.rowcount:
                break
            gone += removed.rowcount
        return gone

    def _forget_series(self) -> None:
        """Delete the series last seen before all that is left: labels that keep changing would fill the file."""
        left = "SELECT min(start) FROM (SELECT start FROM chunk UNION ALL SELECT at FROM tick)"
        first = self.connection.execute(left).fetchone()[0]
        self.connection.execute("DELETE FROM series WHERE seen < ?", (first,))
        self._numbers.clear()
        self._layouts.clear()

    def _used_bytes(self) -> int:
        return (self._pragma("page_count") - self._pragma("freelist_count")) * self._pragma("page_size")

    def _give_back(self) -> None:
        """Shrink a file that is larger than it may be, as after its cap was lowered."""
        if self._pragma("page_count") * self._pragma("page_size") > self._retention.max_bytes - WAL_BYTES:
            self.connection.execute("PRAGMA incremental_vacuum").fetchall()

    def _pragma(self, name: str) -> int:
        return int(self.connection.execute(f"PRAGMA {name}").fetchone()[0])


def _locked(path: Path) -> int:
    """Open ``path`` for as long as it is written and lock it against a second writer."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        # flock, whose locks are none of SQLite's own
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise RecordingError(
                f"{path}: is being written by another process; give each its own file"
            ) from error
        raise
    return descriptor
