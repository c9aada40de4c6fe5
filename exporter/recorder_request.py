"""What ``/api/v1/recorder`` can be asked for, and how the process that reads a recording says no."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl

from exporter.recorder_times import instant

DEFAULT_SECONDS = 3600.0
"""What is given where nobody says from when."""
REFUSED, FAILED, EMPTY = 2, 1, 3
"""Exit codes: what was asked for makes no sense; it can't be done now; nothing was recorded in that time. A line on
standard error says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """From ``start`` to before ``end``, in seconds since the epoch."""

    start: float
    end: float | None
    signals: tuple[str, ...]


def understood(query: str, now: float) -> Request:
    """Read a query string. Raises ValueError with one line."""
    given: dict[str, str] = {}
    signals = []
    for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=100):
        if name == "signal":
            signals.append(value)
        elif name not in {"from", "to"}:
            raise ValueError(f"there is no parameter {name!r}; there are from, to and signal")
        elif name in given:
            raise ValueError(f"{name} is given twice")
        else:
            given[name] = value
    times: dict[str, float] = {}
    for name, value in given.items():
        try:
            times[name] = instant(value)
        except ValueError as error:
            hint = "; in a URL a + is written %2B" if " " in value else ""
            raise ValueError(f"{name}: {error}{hint}") from None
    end = times.get("to")
    start = times.get("from", (now if end is None else end) - DEFAULT_SECONDS)
    if end is not None and start >= end:
        raise ValueError("from must be before to")
    return Request(start, end, tuple(signals))
