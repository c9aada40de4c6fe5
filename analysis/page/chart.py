"""What a chart over time says, without how it is drawn.

    Chart("KV usage", "ratio", series=(Series("engine a", times, values),), thresholds=(Threshold(0.9, "pages"),))

Times are seconds since the epoch; NaN among values is a gap and drawn as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from analysis.frame import Values


class IntervalKind(StrEnum):
    """What a shaded interval is: its colour, and the word beside it in the list below the charts."""

    INCIDENT = "incident"
    PENDING = "alert pending"
    FIRING = "alert firing"
    UNUSUAL = "unusual"
    USUAL = "usual"
    MISSING = "no data"


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One line. ``times``, ``values``: shape (n,), times rising. Raises ValueError: shapes or order that don't fit."""

    label: str
    times: Values
    values: Values

    def __post_init__(self) -> None:
        _checked(self.label, self.times, self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """What is expected: from ``low`` to ``high`` at each of ``times``, all of shape (n,); NaN: nothing is expected."""

    label: str
    times: Values
    low: Values
    high: Values

    def __post_init__(self) -> None:
        _checked(self.label, self.times, self.low)
        _checked(self.label, self.times, self.high)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A level line over the whole chart."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of time that is shaded."""

    start: float
    end: float
    label: str
    kind: IntervalKind = IntervalKind.INCIDENT


@dataclass(frozen=True, slots=True)
class Marker:
    """An instant: a point at ``value``, or a line from top to bottom where there is none."""

    time: float
    label: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """Series of one unit over time. ``note``: a sentence that stands below it."""

    title: str
    unit: str
    series: tuple[Series, ...]
    bands: tuple[Band, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    intervals: tuple[Interval, ...] = ()
    markers: tuple[Marker, ...] = ()
    note: str = ""

    def span(self) -> tuple[float, float] | None:
        """First and last instant of all series and bands; None without any."""
        every = [each.times for each in self.series] + [each.times for each in self.bands]
        ends = [float(times[place]) for times in every if len(times) for place in (0, -1)]
        return (min(ends), max(ends)) if ends else None


def _checked(label: str, times: Values, values: Values) -> None:
    if times.ndim != 1 or times.shape != values.shape:
        raise ValueError(f"{label}: times of shape {times.shape} and values of shape {values.shape}")
    if np.any(np.diff(times) <= 0):
        raise ValueError(f"{label}: times have to be in order, each later than the one before")
