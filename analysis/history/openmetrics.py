"""History from text with timestamps: OpenMetrics, Prometheus' text format, and what ``promtool tsdb dump`` writes.

A dump has hundreds of bytes for each number, nearly all of them the same as on the line before. So lines are taken
apart all at once, by where their newlines and last two spaces stand; each spelling of a series is understood once; and
only a line that doesn't look like ``series value time`` is read by itself.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from numpy.typing import NDArray

from analysis.frame import Key
from analysis.history.history import HistoryError
from analysis.history.samples import MOST_SERIES, Gathered, Progress, Wanted, nothing_between
from exporter.exposition import Reader, Series
from exporter.recorder_times import MOST_SECONDS

_BLOCK_BYTES = 8 << 20
_NEWLINE, _SPACE, _HASH = 10, 32, 35
_LONGEST_LINE_BYTES = 64 << 20
_GZIP = b"\x1f\x8b"
_UNWANTED, _NO_SERIES = -1, -2
_MARK = 7.25e-17
"""A value that tells whether text before it was read as a series and nothing else."""
_LABELLED_NAME = re.compile(rb'^\{__name__="([a-zA-Z_:][a-zA-Z0-9_:]*)"(?:, ?)?')


def read_openmetrics(  # noqa: PLR0913 - what to read, and limits
    path: Path,
    start: float | None = None,
    end: float | None = None,
    *,
    wanted: Wanted | None = None,
    max_series: int = MOST_SERIES,
    progress: Progress | None = None,
) -> Gathered:
    """Read the samples from ``start`` to before ``end`` of the series that are ``wanted`` (None: all).

    The text may be gzipped. Raises HistoryError: it can't be read, no line of it is a sample, samples without times;
    TooManySeriesError.
    """
    dump = _Dump(Gathered(str(path), max_series), wanted or (lambda _: True), start, end)
    try:
        size = max(1, path.stat().st_size)
        with path.open("rb") as raw:
            zipped = raw.read(2) == _GZIP
            raw.seek(0)
            pieces = (
                _unzipped(gzip.GzipFile(fileobj=raw)) if zipped else iter(lambda: raw.read(_BLOCK_BYTES), b"")
            )
            for block, whole in _blocks(pieces, str(path)):
                dump.take(block, whole=whole)
                if progress is not None:
                    progress(min(1.0, raw.tell() / size))
    except (OSError, zlib.error) as error:
        raise HistoryError(f"{path}: can't be read: {error}") from error
    return dump.told()


def _unzipped(file: gzip.GzipFile) -> Iterator[bytes]:
    """What is in it, in pieces; of a file that is cut off, what stands before its end."""
    held: list[bytes] = []
    size = 0
    while True:
        try:
            piece = file.read1(_BLOCK_BYTES)
        except EOFError:
            yield b"".join((*held, b"?"))  # no newline at the end, so that the cut is seen
            return
        held.append(piece)
        size += len(piece)
        if size >= _BLOCK_BYTES or not piece:
            yield b"".join(held)
            held, size = [], 0
        if not piece:
            return


def _blocks(pieces: Iterator[bytes], name: str) -> Iterator[tuple[bytes, bool]]:
    """The text in pieces that end with a newline; the last one may not, which is told."""
    rest = b""
    for piece in pieces:
        head, newline, tail = piece.rpartition(b"\n")
        if newline:
            yield rest + head + newline, True
            rest = tail
        else:
            rest += piece
            if len(rest) > _LONGEST_LINE_BYTES:
                raise HistoryError(f"{name}: has no line of text in its first {len(rest):,} bytes")
    if rest:
        yield rest + b"\n", False


class _Found(NamedTuple):
    """Samples of a piece of text: where their lines begin, places of series, times and values; all of shape (n,)."""

    begins: NDArray[np.int64]
    places: NDArray[np.int32]
    times: NDArray[np.float64]
    values: NDArray[np.float64]

    def where(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> _Found:
        """Those of them, in that order."""
        return _Found(self.begins[which], self.places[which], self.times[which], self.values[which])


@dataclass(slots=True)
class _Dump:
    """A dump so far. ``places`` says what each spelling of a series is: a place, or why it has none."""

    gathered: Gathered
    wanted: Wanted
    start: float | None
    end: float | None
    places: dict[bytes, int] = field(default_factory=dict)
    reader: Reader[Series] = field(default_factory=lambda: Reader(lambda series: series))
    samples: int = 0
    untimed: int = 0
    unreadable: int = 0
    first_unreadable: bytes = b""
    first: float = np.inf
    last: float = -np.inf
    has_head: bool = False
    ended: bool = False

    def take(self, block: bytes, *, whole: bool) -> None:
        """Take a piece of the text; of one that isn't ``whole`` the last line is cut off."""
        if not whole:
            head, _, cut = block[:-1].rpartition(b"\n")
            block = head + b"\n" if head else b""
            if cut.strip() == b"# EOF":
                self.ended = True
            elif cut.strip():
                self.gathered.notes.append("the file is cut off in its last line, which was left out")
                self.ended = True
        text = np.frombuffer(block, np.uint8)
        marks = np.flatnonzero((text == _NEWLINE) | (text == _SPACE))
        at = np.flatnonzero(text[marks] == _NEWLINE)
        ends = marks[at]
        starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
        # of the two spaces before each newline; where there are fewer, some of the lines before
        before_time, before_value = marks[np.maximum(at - 1, 0)], marks[np.maximum(at - 2, 0)]
        comment = text[starts] == _HASH if len(starts) else np.empty(0, bool)
        self._note_comments(block, starts[comment], ends[comment])
        plain = ~comment & (before_value > starts) & (before_time > before_value)
        bounds = (starts, before_value, before_value + 1, before_time, before_time + 1, ends)
        odd, found = self._plain(block, [each[plain] for each in bounds])
        lines = sorted(
            [
                *zip(starts[plain][odd].tolist(), ends[plain][odd].tolist(), strict=True),
                *zip(starts[~plain & ~comment].tolist(), ends[~plain & ~comment].tolist(), strict=True),
            ]
        )
        single = [
            (begin, *sample)
            for begin, finish in lines
            if (sample := self._single(block[begin:finish])) is not None
        ]
        if single:
            begins, places, times, values = zip(*single, strict=True)
            found = _Found(
                np.append(found.begins, begins),
                np.append(found.places, np.array(places, np.int32)),
                np.append(found.times, times),
                np.append(found.values, values),
            )
            found = found.where(np.argsort(found.begins))
        self.samples += len(found.begins)
        self._add(found)

    def told(self) -> Gathered:
        """What was read. Raises HistoryError where that is nothing."""
        name = self.gathered.source
        if not self.samples:
            if self.untimed:
                raise HistoryError(
                    f"{name}: its samples bear no times, so it is what one scrape showed; history needs a dump"
                )
            if self.has_head and not self.unreadable:
                raise HistoryError(f"{name}: holds no samples")
            if b"\0" in self.first_unreadable:
                raise HistoryError(f"{name}: is no text; a dump, a recording or Parquet is read")
            shown = self.first_unreadable[:60].decode("utf-8", "replace")
            begins = f", but begins with {shown!r}" if shown else " but empty"
            raise HistoryError(f"{name}: is no metrics text{begins}")
        notes = self.gathered.notes
        if self.has_head and not self.ended:
            notes.append("the file ends without # EOF: it may be cut off")
        if self.unreadable:
            shown = self.first_unreadable[:60].decode("utf-8", "replace")
            notes.append(f"{self.unreadable:,} lines could not be read, the first of them {shown!r}")
        if self.untimed:
            notes.append(f"{self.untimed:,} samples bear no time and were left out")
        if self.gathered.keys and not len(self.gathered):
            raise HistoryError(nothing_between(name, (float(self.first), float(self.last))))
        return self.gathered

    def _note_comments(self, block: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        if len(starts):
            self.has_head = True
            self.ended = self.ended or block[starts[-1] : ends[-1]].strip() == b"# EOF"

    def _plain(self, block: bytes, bounds: list[NDArray[np.int64]]) -> tuple[NDArray[np.bool_], _Found]:
        """Lines by where series, value and time begin and end: which are no such lines, and what the others hold."""
        count = len(bounds[0])
        offsets = np.empty(6 * count + 1, np.int32)
        for place, each in enumerate(bounds):
            offsets[place:-1:6] = each
        offsets[-1] = bounds[-1][-1] if count else 0
        parts = pa.BinaryArray.from_buffers(
            pa.binary(), 6 * count, [None, pa.py_buffer(offsets), pa.py_buffer(block)]
        )
        every = np.arange(0, 6 * count, 6)
        spellings = parts.take(pa.array(every)).dictionary_encode()
        known = np.array([self._place(each) for each in spellings.dictionary.to_pylist()], np.int32)
        places = known[spellings.indices.to_numpy()]
        odd = np.asarray(places == _NO_SERIES)
        values, bad_values = _numbers(parts.take(pa.array(every[~odd] + 2)))
        times, bad_times = _numbers(parts.take(pa.array(every[~odd] + 4)))
        bad = bad_values | bad_times | ~np.isfinite(times)
        found = _Found(bounds[0][~odd], places[~odd], times, values)
        if bad.any():
            odd[np.flatnonzero(~odd)[bad]] = True
            found = found.where(~bad)
        return odd, found

    def _add(self, found: _Found) -> None:
        _, places, times, values = found.where(found.places >= 0)
        if not len(times):
            return
        late = times >= MOST_SECONDS  # in milliseconds, as Prometheus' own text has them
        if late.any():
            times = np.where(late, times / 1000, times)
        self.first, self.last = min(self.first, times.min()), max(self.last, times.max())
        inside = np.ones(len(times), bool)
        if self.start is not None:
            inside &= times >= self.start
        if self.end is not None:
            inside &= times < self.end
        if not inside.all():
            places, times, values = places[inside], times[inside], values[inside]
        self.gathered.add(places, times, values)

    def _single(self, line: bytes) -> tuple[int, float, float] | None:
        """Place, time and value of a line that isn't plain: with an exemplar, more blanks, or no sample at all."""
        line = line.strip()
        if not line or line.startswith(b"#"):
            return None
        without = line.split(b" # {")[0]
        for text in (without, line):
            words = text.rsplit(None, 2)
            if len(words) == 3 and _is_number(words[1]) and _is_number(words[2]):  # noqa: PLR2004 - series, value, time
                place, at = self._place(words[0]), float(words[2])
                if place != _NO_SERIES and np.isfinite(at):
                    return place, at, float(words[1])
        words = without.rsplit(None, 1)
        if len(words) == 2 and _is_number(words[1]) and self._place(words[0]) != _NO_SERIES:  # noqa: PLR2004
            self.untimed += 1
        else:
            self.unreadable += 1
            self.first_unreadable = self.first_unreadable or line
        return None

    def _place(self, spelling: bytes) -> int:
        found = self.places.get(spelling)
        if found is None:
            text = _LABELLED_NAME.sub(rb"\1{", spelling, count=1)  # as promtool tsdb dump writes names
            readings = self.reader.read(text + b" %r\n" % _MARK)
            if len(readings) == 1 and readings[0][1] == _MARK:
                key = Key.of(readings[0][0].name, dict(readings[0][0].labels))
                found = self.gathered.place(key) if self.wanted(key) else _UNWANTED
                self.places[spelling] = found
            else:
                found = _NO_SERIES  # not kept: with exemplars there is a new one on each line
        return found


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return b"_" not in text


def _numbers(texts: pa.BinaryArray) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Texts as numbers, and which of them are none."""
    try:
        numbers = pc.cast(texts.view(pa.string()), pa.float64()).to_numpy(zero_copy_only=False)
        return numbers, np.zeros(len(numbers), bool)
    except pa.ArrowInvalid:
        found = [float(text) if _is_number(text) else None for text in texts.to_pylist()]
        return np.array([number or 0.0 for number in found]), np.array(
            [number is None for number in found], bool
        )
