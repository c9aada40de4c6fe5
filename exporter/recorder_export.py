"""Writes a recording as OpenMetrics text, family by family, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

from exporter.recorder_reader import Family, Recording, Series
from exporter.recorder_selection import Selection, selected
from exporter.signal import Kind

_LINES_AT_ONCE = 2_000


class Sink(Protocol):
    """What bytes are written to."""

    def write(self, data: bytes, /) -> int:
        """Take all of ``data``."""


def export_openmetrics(recording: Recording, out: Sink, selection: Selection | None = None) -> int:
    """Write what ``selection`` takes of a recording, all of it by default, to ``out``.

    Gives the number of values written. Raises UnknownSignalError, RecordingError and OSError.
    """
    written = 0
    begun = ""
    for family, series in selected(recording, selection or Selection()):
        if family.name != begun:
            begun = family.name
            out.write(_head(family).encode())
        for lines in _lines(series):
            written += len(lines)
            out.write("".join(lines).encode())
    out.write(b"# EOF\n")
    return written


def _head(family: Family) -> str:
    name = family.name.removesuffix("_total") if family.kind is Kind.COUNTER else family.name
    return f"# TYPE {name} {family.kind.value}\n# HELP {name} {_escaped(family.help)}\n"


def _lines(series: Series) -> Iterator[list[str]]:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in series.labels.items())
    prefix = f"{series.name}{{{labels}}}" if labels else series.name
    for begin in range(0, len(series.times), _LINES_AT_ONCE):
        part = slice(begin, begin + _LINES_AT_ONCE)
        yield [
            f"{prefix} {_number(value)} {at:.3f}\n"
            for at, value in zip(series.times[part], series.values[part], strict=True)
        ]


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
