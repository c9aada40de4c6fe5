"""History as Parquet: frames that were stored once to be read often, and the long tables that recorders export.

A stored frame is wide: one column a series, one row an instant, gaps as NaN, and what no column can say (keys, step,
source, notes) in the schema's metadata. Reading one costs a tenth of what an analysis does with it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from numpy.typing import NDArray

from analysis.frame import Frame, Key, Values
from analysis.history.history import History, HistoryError
from analysis.history.samples import MOST_SERIES, Gathered, Progress, Wanted, nothing_between
from exporter.recorder_parquet import METRIC, TAKEN_PREFIX, TIME, VALUE

_FRAME = b"thrashold.frame"
_VERSION = 1
_ROWS_AT_ONCE = 1 << 16
"""Of a stored frame: a range of it is read by the groups of rows that it touches."""
_LONG_ROWS_AT_ONCE = 1 << 20


def store(history: History, path: Path) -> None:
    """Write a history to be read again with ``load``: the same values, bit for bit.

    A column is float32 where that holds each of its values, as of a recording's gauges it does, else float64.
    Raises OSError.
    """
    frame = history.frame
    story = {
        "version": _VERSION,
        "start": float(frame.times[0]) if len(frame) else 0.0,
        "step_seconds": frame.step_seconds,
        "keys": [[key.name, dict(key.labels)] for key in frame.keys],
        "source": history.source,
        "derived": sorted(history.derived),
        "notes": list(history.notes),
    }
    columns = [_narrow(values) for _, values in frame.columns()]
    schema = pa.schema(
        [(str(place), pa.from_numpy_dtype(column.dtype)) for place, column in enumerate(columns)],
        metadata={_FRAME: json.dumps(story).encode()},
    )
    table = pa.Table.from_arrays([pa.array(column, from_pandas=False) for column in columns], schema=schema)
    pq.write_table(
        table,
        path,
        row_group_size=_ROWS_AT_ONCE,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
    )


def load(
    path: Path,
    start: float | None = None,
    end: float | None = None,
    *,
    names: Collection[str] | None = None,
) -> History:
    """Read a stored history, from ``start`` to before ``end``, of the series called ``names`` (None: all).

    Raises HistoryError: no such file, no stored frame, damaged, nothing in that range or of those names.
    """
    try:
        with pq.ParquetFile(path) as file:
            return _load(file, path, start, end, names)
    except (OSError, pa.ArrowException, ValueError, LookupError, TypeError) as error:
        raise HistoryError(f"{path}: can't be read: {error}") from error


def is_stored(path: Path) -> bool:
    """Whether a Parquet file is a stored frame. Raises HistoryError where it can't be read."""
    try:
        return _FRAME in (pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException) as error:
        raise HistoryError(f"{path}: is no whole Parquet file: {error}") from error


def read_long(  # noqa: PLR0913 - what to read, and limits
    path: Path,
    start: float | None = None,
    end: float | None = None,
    *,
    wanted: Wanted | None = None,
    max_series: int = MOST_SERIES,
    progress: Progress | None = None,
) -> Gathered:
    """Read a table with a row a value, as ``thrashold recorder export`` writes it.

    Its columns are a time, a metric's name, a value, and one for each label. Series that aren't ``wanted`` are left out
    (None: none is). Raises HistoryError: not such a table, no value in that range; TooManySeriesError.
    """
    gathered = Gathered(str(path), max_series)
    first, last = np.inf, -np.inf
    try:
        labels = _labels_of(pq.read_schema(path), path)
        # texts as they are stored, each once
        with pq.ParquetFile(path, read_dictionary=[METRIC, *labels]) as file:
            done, rows = 0, max(1, file.metadata.num_rows)
            for batch in file.iter_batches(_LONG_ROWS_AT_ONCE):
                done += len(batch)
                times = _seconds(batch.column(TIME))
                if len(times):
                    first, last = min(first, times.min()), max(last, times.max())
                _take(gathered, batch, times, labels, (start, end), wanted or (lambda _: True))
                if progress is not None:
                    progress(done / rows)
    except (OSError, pa.ArrowException) as error:
        raise HistoryError(f"{path}: can't be read: {error}") from error
    if not len(gathered):
        if first > last:
            raise HistoryError(f"{path}: holds no values")
        if gathered.keys:
            raise HistoryError(nothing_between(str(path), (float(first), float(last))))
    return gathered


def _narrow(column: Values) -> NDArray[np.float32] | Values:
    """As float32 where no value changes by it."""
    with np.errstate(over="ignore"):
        small = column.astype(np.float32)
    return small if np.array_equal(small.astype(np.float64), column, equal_nan=True) else column


def _load(
    file: pq.ParquetFile,
    path: Path,
    start: float | None,
    end: float | None,
    names: Collection[str] | None,
) -> History:
    told = (file.schema_arrow.metadata or {}).get(_FRAME)
    if told is None:
        raise HistoryError(
            f"{path}: is no stored history: its columns are {_some_of(file.schema_arrow.names)}"
        )
    story = json.loads(told)
    if story["version"] != _VERSION:
        raise HistoryError(f"{path}: was stored by another version of thrashold; store it anew")
    step, rows = float(story["step_seconds"]), file.metadata.num_rows
    times = story["start"] + step * np.arange(rows)
    begin = 0 if start is None else int(np.searchsorted(times, start))
    finish = rows if end is None else int(np.searchsorted(times, end))
    if begin >= finish:
        span = (float(times[0]), float(times[-1])) if rows else (0.0, 0.0)
        raise HistoryError(nothing_between(str(path), span) if rows else f"{path}: holds no values")
    keys = [Key.of(name, labels) for name, labels in story["keys"]]
    places = [place for place, key in enumerate(keys) if names is None or key.name in names]
    if not places:
        raise HistoryError(f"{path}: holds none of {', '.join(sorted(names or ()))}")
    values = np.empty((finish - begin, len(places)), order="F")
    at = 0
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        first, last = max(begin, at), min(finish, at + size)
        if first < last:
            # one thread takes a tenth of a second for a day of 200 series; more take more of the machine
            table = file.read_row_group(group, [str(place) for place in places], use_threads=False)
            for column, part in enumerate(table.columns):
                values[first - begin : last - begin, column] = part.to_numpy()[first - at : last - at]
        at += size
    frame = Frame(times[begin:finish], step, tuple(keys[place] for place in places), values)
    kept = {key.name for key in frame.keys}
    return History(frame, story["source"], frozenset(story["derived"]) & kept, tuple(story["notes"]))


def _labels_of(schema: pa.Schema, path: Path) -> list[str]:
    """The columns that hold labels. Raises HistoryError for a table that is no recording's."""
    missing = [name for name in (TIME, METRIC, VALUE) if name not in schema.names]
    if missing:
        raise HistoryError(
            f"{path}: is no history: it has no column {', '.join(missing)} (its columns are {_some_of(schema.names)}); "
            f"a table has {TIME}, {METRIC}, {VALUE} and a column for each label"
        )
    if not pa.types.is_timestamp(schema.field(TIME).type):
        raise HistoryError(f"{path}: its column {TIME} is {schema.field(TIME).type} and no timestamp")
    return [name for name in schema.names if name not in {TIME, METRIC, VALUE}]


def _some_of(names: Collection[str], most: int = 6) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "") or "none"


def _seconds(column: pa.Array) -> Values:
    """Instants as seconds since the epoch."""
    if column.null_count:
        raise pa.ArrowInvalid("some rows bear no time")
    ticks = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False) / ticks, dtype=np.float64)


def _take(  # noqa: PLR0913, PLR0917 - a batch, what is known of it, and what is wanted
    gathered: Gathered,
    batch: pa.RecordBatch,
    times: Values,
    labels: list[str],
    between: tuple[float | None, float | None],
    wanted: Wanted,
) -> None:
    """Take the values of a batch: what series a row is of is worked out once for each stretch of rows."""
    codes, texts = [], []
    for name in (METRIC, *labels):
        column = batch.column(name)
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        codes.append(np.asarray(pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False)))
        texts.append(column.dictionary.to_pylist())
    changes = np.zeros(len(times), bool)
    changes[:1] = True
    for code in codes:
        changes[1:] |= code[1:] != code[:-1]
    begins = np.flatnonzero(changes)
    first, which = _distinct([code[begins] for code in codes])
    places = np.array(
        [
            _place(
                gathered,
                [None if code[row] < 0 else text[code[row]] for code, text in zip(codes, texts, strict=True)],
                labels,
                wanted,
            )
            for row in begins[first]
        ],
        np.int32,
    )[which]
    whose = np.repeat(places, np.diff(np.append(begins, len(times))))
    start, end = between
    values = np.asarray(batch.column(VALUE).cast(pa.float64()).to_numpy(zero_copy_only=False))
    inside = whose >= 0
    if start is not None:
        inside &= times >= start
    if end is not None:
        inside &= times < end
    if inside.all():
        gathered.add(whose, times, values)
    else:
        gathered.add(whose[inside], times[inside], values[inside])


def _distinct(codes: Sequence[NDArray[np.integer]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each combination of codes (-1 and up) stands first, in order, and which of them each row has."""
    combined = np.zeros(len(codes[0]), np.int64)
    for code in codes:
        # numbered anew each time, so that the product of many columns stays small
        _, combined = np.unique(combined * (int(code.max(initial=0)) + 2) + code + 1, return_inverse=True)
    _, first, which = np.unique(combined, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.intp)
    number[order] = np.arange(len(order))
    return first[order], number[which]


def _place(gathered: Gathered, texts: list[str | None], labels: list[str], wanted: Wanted) -> int:
    metric, *rest = texts
    if metric is None:
        return -1
    said = {
        name.removeprefix(TAKEN_PREFIX)
        if name.removeprefix(TAKEN_PREFIX) in {TIME, METRIC, VALUE}
        else name: text
        for name, text in zip(labels, rest, strict=True)
        if text
    }
    key = Key.of(metric, said)
    return gathered.place(key) if wanted(key) else -1
