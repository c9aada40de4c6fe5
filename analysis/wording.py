"""Durations and tables as people read them on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_LARGE = 100.0
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0


def duration(seconds: float) -> str:
    """In the two largest units that it has."""
    whole = round(seconds)
    parts = []
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1.0, "s")):
        count, whole = divmod(whole, int(size))
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def count(number: float) -> str:
    """Three digits of it where it is small, whole and in groups of three where it is large."""
    return f"{number:,.0f}" if number >= _LARGE else f"{number:.3g}"


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of texts, the first a head, under one another."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(f"{text:{wide}}" for text, wide in zip(row, widths, strict=True)).rstrip()
