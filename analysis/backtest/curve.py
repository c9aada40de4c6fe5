"""Lead against noise as a picture of letters, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.backtest.sweep import Point, Swept
from analysis.wording import count

_WIDE, _HIGH = 60, 12
_OTHER, _BEST, _NOW = "·", "o", "#"


def curve(swept: Swept) -> Iterator[str]:
    """Every setting that tells of the moment: noise a week to the right, lead in seconds upwards."""
    told = [(point, lead) for point in swept.points if (lead := point.measures.lead_seconds) is not None]
    if not told:
        return
    most_noise = max(point.measures.noise_per_week for point, _ in told)
    leads = [lead for _, lead in told]
    low, high = min(leads), max(leads)
    cells = [[" "] * (_WIDE + 1) for _ in range(_HIGH + 1)]
    for point, lead in sorted(told, key=lambda each: _rank(each[0])):
        across = round(point.measures.noise_per_week / (most_noise or 1.0) * _WIDE)
        up = round((lead - low) / (high - low) * _HIGH) if high > low else 0
        cells[_HIGH - up][across] = (_OTHER, _BEST, _NOW)[_rank(point)]
    yield f"lead in seconds, against noise a week ({_BEST} best, {_NOW} as it is set, {_OTHER} others)"
    for place, row in enumerate(cells):
        level = {0: f"{high:8.0f}", _HIGH: f"{low:8.0f}"}.get(place, " " * 8)
        yield f"{level} |{''.join(row)}".rstrip()
    yield " " * 9 + "+" + "-" * (_WIDE + 1)
    yield f"{' ' * 10}0{count(most_noise):>{_WIDE}}"


def _rank(point: Point) -> int:
    return 2 if point.shipped else int(point.best)
