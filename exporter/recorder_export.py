"""Writes a recording as OpenMetrics text, family by family, in bounded memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
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
    stamps = _Stamps()
    for family, series in selected(recording, selection or Selection()):
        if family.name != begun:
            begun = family.name
            out.write(_head(family).encode())
        for lines in _lines(series, stamps.of(series.times)):
            written += len(lines)
            out.write("".join(lines).encode())
    out.write(b"# EOF\n")
    return written


def _head(family: Family) -> str:
    name = family.name.removesuffix("_total") if family.kind is Kind.COUNTER else family.name
    return f"# TYPE {name} {family.kind.value}\n# HELP {name} {_escaped(family.help)}\n"


def _lines(series: Series, stamps: Sequence[str]) -> Iterator[list[str]]:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in series.labels.items())
    prefix = f"{series.name}{{{labels}}}" if labels else series.name
    for begin in range(0, len(stamps), _LINES_AT_ONCE):
        part = slice(begin, begin + _LINES_AT_ONCE)
        values = series.values[part]
        numbers = map(repr if all(map(math.isfinite, values)) else _number, values)
        yield [f"{prefix} {number} {at}\n" for number, at in zip(numbers, stamps[part], strict=True)]


class _Stamps:
    """Times as text: most series share an array of them, which is written once."""

    def __init__(self) -> None:
        self._of: array[float] = array("d")
        self._texts: list[str] = []

    def of(self, times: array[float]) -> list[str]:
        """Each in seconds, to the millisecond."""
        if times is not self._of:
            self._of, self._texts = times, [f"{at:.3f}" for at in times]
        return self._texts


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
