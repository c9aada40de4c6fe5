"""Writes a recording as OpenMetrics text, family by family, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from exporter.recorder_reader import Family, Recording, Series
from exporter.signal import Kind

_POINTS_AT_ONCE = 4_000_000
"""Values held in memory, 16 bytes each; each batch of families goes through the recording once."""
_LINES_AT_ONCE = 10_000


def export_openmetrics(
    recording: Recording, out: BinaryIO, start: float | None = None, end: float | None = None
) -> int:
    """Write what was recorded from ``start`` to before ``end`` (seconds since the epoch) to ``out``.

    Gives the number of values written. A counter that is negative or not a number is left out: the
    format has no place for it. Raises RecordingError and OSError.
    """
    written = 0
    for batch in _batches(recording.families(), recording.cycles()):
        families = {family.name: family for family in batch}
        begun: str | None = None
        for series in recording.read(start, end, families):
            if series.name != begun:
                begun = series.name
                out.write(_head(families[begun]).encode())
            for lines in _lines(series):
                written += len(lines)
                out.write("".join(lines).encode())
    out.write(b"# EOF\n")
    return written


def _batches(families: Sequence[Family], cycles: int) -> Iterator[list[Family]]:
    batch: list[Family] = []
    points = 0
    for family in families:
        more = family.series * cycles
        if batch and points + more > _POINTS_AT_ONCE:
            yield batch
            batch, points = [], 0
        batch.append(family)
        points += more
    if batch:
        yield batch


def _head(family: Family) -> str:
    name = family.name.removesuffix("_total") if family.kind is Kind.COUNTER else family.name
    return f"# TYPE {name} {family.kind.value}\n# HELP {name} {_escaped(family.help)}\n"


def _lines(series: Series) -> Iterator[list[str]]:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in series.labels.items())
    prefix = f"{series.name}{{{labels}}}" if labels else series.name
    is_counter = series.kind is Kind.COUNTER
    for begin in range(0, len(series.times), _LINES_AT_ONCE):
        part = slice(begin, begin + _LINES_AT_ONCE)
        yield [
            f"{prefix} {_number(value)} {at:.3f}\n"
            for at, value in zip(series.times[part], series.values[part], strict=True)
            if not is_counter or value >= 0
        ]


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
