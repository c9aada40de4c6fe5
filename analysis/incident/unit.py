"""Figures as people read them: a unit a measure, and one way to write each."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable


class Unit(enum.Enum):
    """What a value counts, in base units."""

    COUNT = "count"
    FLAG = "flag"
    RATIO = "ratio"
    TIMES = "times"
    SECONDS = "seconds"
    PER_SECOND = "per second"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes per second"

    def words(self, value: float | None) -> str:
        """A value with its unit; a dash where it isn't known."""
        if value is None or math.isnan(value):
            return UNKNOWN
        return _WORDS[self](value)


UNKNOWN = "-"
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_MINUTE, _HOUR = 60, 3600


def count(value: float) -> str:
    """Three digits where there are no more, thousands set apart."""
    if abs(value) >= 100 or value == round(value):  # noqa: PLR2004 -- three digits
        return f"{value:,.0f}"
    return f"{value:.3g}"


def seconds(value: float) -> str:
    """A latency: milliseconds below a second."""
    if abs(value) < 1:
        return f"{value * 1000:,.3g} ms" if value else "0 ms"
    return f"{value:,.3g} s" if abs(value) < 1000 else f"{value:,.0f} s"  # noqa: PLR2004 -- three digits


def duration(value: float) -> str:
    """A stretch of time: ``47 min``, ``1 h 12 min``, ``50 s``."""
    if value < 2 * _MINUTE:
        return f"{value:.0f} s"
    minutes = round(value / _MINUTE)
    return f"{minutes} min" if minutes < _HOUR // _MINUTE * 2 else f"{minutes // 60} h {minutes % 60} min"


def size(value: float) -> str:
    """Bytes, in powers of ten."""
    for factor, name in _SIZES:
        if abs(value) >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value:.0f} B"


def percent(value: float) -> str:
    """A share."""
    shown = 100 * value
    return f"{shown:.2g} %" if 0 < abs(shown) < 1 else f"{shown:.0f} %"


_WORDS: dict[Unit, Callable[[float], str]] = {
    Unit.COUNT: count,
    Unit.FLAG: lambda value: "yes" if value else "no",
    Unit.RATIO: percent,
    Unit.TIMES: lambda value: f"{count(value)}x",
    Unit.SECONDS: seconds,
    Unit.PER_SECOND: lambda value: f"{count(value)}/s",
    Unit.BYTES: size,
    Unit.BYTES_PER_SECOND: lambda value: f"{size(value)}/s",
}
