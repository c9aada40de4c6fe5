"""Writes a recording as Parquet: one long table that says each value's time, metric and labels.

The one file of the sidecar's folder that knows pyarrow, which comes with the ``analysis`` extra; only
``thrashold recorder export`` loads it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from exporter.recorder_reader import Family, Recording, Series
from exporter.recorder_selection import Selection, selected, selected_families

TIME, METRIC, VALUE = "time", "metric", "value"
TAKEN_PREFIX = "exported_"
"""What goes before a label that is called like one of our columns, as Prometheus does it."""
_ROWS_AT_ONCE = 250_000
_INSTANT = pa.timestamp("ms", tz="UTC")


def export_parquet(recording: Recording, out: BinaryIO, selection: Selection | None = None) -> int:
    """Write what ``selection`` takes of a recording, all of it by default, to ``out``.

    Columns are ``time`` (to the millisecond, UTC), ``metric``, one for each label, null where a metric
    has no such label, and ``value``. Rows stand series by series in order of time, so that a reader who
    filters by metric skips all other row groups. Gives the number of values written. Raises
    UnknownSignalError, RecordingError and OSError.
    """
    selection = selection or Selection()
    table = _Table(selected_families(recording, selection))
    written = rows = 0
    batches: list[pa.RecordBatch] = []
    with pq.ParquetWriter(
        out,
        table.schema,
        compression="zstd",
        use_dictionary=table.texts,
        column_encoding={TIME: "DELTA_BINARY_PACKED", VALUE: "BYTE_STREAM_SPLIT"},
    ) as writer:
        for _, series in selected(recording, selection):
            batches.append(table.batch(series))
            rows += len(series.times)
            if rows >= _ROWS_AT_ONCE:
                writer.write_table(pa.Table.from_batches(batches))
                written, rows, batches = written + rows, 0, []
        # also where nothing was found: a table without rows is one
        writer.write_table(pa.Table.from_batches(batches, table.schema))
    return written + rows


class _Table:
    """The columns of a table: what text each can hold is known before the first row.

    The metric is plain text and labels are dictionaries: pyarrow skips row groups by the one only, and
    pandas makes categories of the others, which take a tenth of the memory.
    """

    def __init__(self, families: Iterable[Family]) -> None:
        held: dict[str, set[str]] = {}
        for family in families:
            for labels in family.series.values():
                for name, text in labels.items():
                    held.setdefault(_column(name), set()).add(text)
        self._places = {
            column: {text: place for place, text in enumerate(sorted(held[column]))}
            for column in sorted(held)
        }
        self._dictionaries = {
            column: pa.array(list(places), pa.string()) for column, places in self._places.items()
        }
        self.texts = [METRIC, *self._places]
        """The columns that hold text."""
        self.schema = pa.schema(
            [
                (TIME, _INSTANT),
                (METRIC, pa.string()),
                *((column, pa.dictionary(pa.int32(), pa.string())) for column in self._places),
                (VALUE, pa.float64()),
            ]
        )

    def batch(self, series: Series) -> pa.RecordBatch:
        """The rows of one series."""
        count = len(series.times)
        said = {_column(name): text for name, text in series.labels.items()}
        nothing = pa.nulls(count, pa.int32())
        columns = [
            _numbers(_INSTANT, array("q", (round(at * 1000) for at in series.times))),
            pa.repeat(pa.scalar(series.name, pa.string()), count),
        ]
        for column, places in self._places.items():
            text = said.get(column)
            indices = nothing if text is None else pa.repeat(pa.scalar(places[text], pa.int32()), count)
            columns.append(pa.DictionaryArray.from_arrays(indices, self._dictionaries[column]))
        columns.append(_numbers(pa.float64(), array("d", series.values)))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _column(label: str) -> str:
    return TAKEN_PREFIX + label if label in {TIME, METRIC, VALUE} else label


def _numbers(kind: pa.DataType, numbers: array[float] | array[int]) -> pa.Array:
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
