"""Where numbers begin to leave what was usual: the corner of a level and a rise, of several numbers together.

Alerts hold late by nature: they look at trailing minutes, and pools fill before anybody suffers. What goes wrong shows
sooner: at a stroke, as a rise to another level (a trailing window makes one of a step), or ever faster, where what is
asked grows itself and what is held adds it up. Each such course is fitted by least squares from each instant on, and
how well it fits there is that instant's likelihood. Numbers that move of the same thing are likely to begin together:
their likelihoods multiply, so that one that jumps about doesn't outvote one that tells exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from analysis.frame import Values
from analysis.robust import scale_of_sorted

_LEAST_POINTS = 4
"""Before and after a bend: fewer are no level."""
_CLIPPED_AT = 5.0
"""Spreads from the middle, beyond which a value is taken as no further away: one wild value is no level."""
_LEAST_LEFT = 0.002
"""Of the range: what a fit leaves is never less, or numbers that never vary would outvote all others."""
_MOST_ALIKE = 0.98
"""How alike what is left is from one value to the next: beyond it nothing would count at all."""
_POWERS = 5


class Form(NamedTuple):
    """A rise within so many seconds to another level: by ``power`` 1 evenly, by 2 ever faster."""

    seconds: float
    power: int


_FORMS = (
    Form(0.0, 1),
    *(Form(seconds, 1) for seconds in (10.0, 20.0, 40.0, 80.0, 160.0, 320.0)),
    *(Form(seconds, 2) for seconds in (20.0, 40.0, 80.0, 160.0, 320.0)),
)


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """One number over time: ``values`` of shape (n,), NaN where not known.

    ``way``: 1 it rises, -1 it falls, 0 either. ``counted``: it is a count or goes with one, so that it varies as its
    root does; not below 0.
    """

    values: Values
    way: int = 0
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Bend:
    """``at``: when it begins. ``strength``: by how many spreads of what is left by the fit the number that moves most
    clearly does so.
    """

    at: float
    strength: float


def bend(times: Values, values: Values, first: float, last: float) -> Bend | None:
    """The likeliest bend of one number between two instants; ``times``, ``values``: shape (n,), NaN where not known.

    None: too little is known, or nothing moves.
    """
    return bend_of_all(times, (Course(values),), first, last)


def bend_of_all(
    times: Values, courses: Iterable[Course], first: float, last: float, latest: float = np.inf
) -> Bend | None:
    """Where numbers are likeliest to begin to move together, between two instants and not after ``latest``.

    None: too little is known of any, or none moves.
    """
    inside = (times >= first) & (times <= last)
    at = times[inside]
    corners = at[_LEAST_POINTS : len(at) - _LEAST_POINTS + 1]
    corners = corners[corners <= latest]
    found = []
    if len(corners):
        for course in courses:
            values = course.values[inside]
            known = ~np.isnan(values)
            if np.count_nonzero(known) >= 2 * _LEAST_POINTS and np.ptp(values[known]) > 0:
                found.append(_profile(at[known], course, values[known], corners))
    if not found:
        return None
    place = int(np.argmax(np.sum([each.likelihood for each in found], axis=0)))
    return Bend(float(corners[place]), max(float(each.strength[place]) for each in found))


class _Profile(NamedTuple):
    """Of one number, by corner: shape (corners,). ``likelihood``: its logarithm, above that of no bend at all."""

    likelihood: Values
    strength: Values


def _profile(at: Values, told: Course, values: Values, corners: Values) -> _Profile:
    course = _comparable(np.sqrt(values) if told.counted else values)
    clock = (at - at[0]) / max(1.0, float(at[-1] - at[0]))
    scale = max(1.0, float(at[-1] - at[0]))
    sums = _Sums(clock, course)
    count = len(course)
    total = float(course @ course) - float(course.sum()) ** 2 / count
    floor = count * (_LEAST_LEFT * float(np.ptp(course))) ** 2
    starts = (corners - at[0]) / scale
    left, rise, best = np.full(len(corners), np.inf), np.zeros(len(corners)), np.zeros(len(corners), dtype=int)
    for number, form in enumerate(_FORMS):
        height, remains = sums.fitted(starts, form.seconds / scale, form.power, total, told.way)
        better = remains < left
        left, rise, best = (
            np.where(better, remains, left),
            np.where(better, height, rise),
            np.where(better, number, best),
        )
    left = np.maximum(left, floor)
    place = int(np.argmin(left))
    remains = course - rise[place] * _shape(clock - starts[place], _FORMS[best[place]], scale)
    remains -= remains.mean()
    alike = float(remains[1:] @ remains[:-1]) / max(float(remains @ remains), np.finfo(float).tiny)
    alike = min(max(alike, 0.0), _MOST_ALIKE)
    # values that hang together say as much as fewer that don't
    independent = count * (1 - alike) / (1 + alike)
    return _Profile(
        0.5 * independent * np.log(max(total, floor) / left), np.abs(rise) / np.sqrt(left / count)
    )


def _comparable(values: Values) -> Values:
    """Without units, wild values clipped."""
    scale = scale_of_sorted(np.sort(values))
    spread = scale.spread or float(np.ptp(values))
    return np.clip((values - scale.middle) / spread, -_CLIPPED_AT, _CLIPPED_AT)


def _shape(since: Values, form: Form, scale: float) -> Values:
    if form.seconds == 0:
        return (since >= 0).astype(np.float64)
    return np.clip(since * scale / form.seconds, 0.0, 1.0) ** form.power


class _Sums:
    """Sums of powers of time, alone and by value, from which each fit follows without going through the values."""

    def __init__(self, clock: Values, course: Values) -> None:
        self._clock = clock
        self._count = len(course)
        self._mean = float(course.mean())
        powers = list(accumulate([np.ones(self._count), *[clock] * (_POWERS - 1)], np.multiply))
        self._plain = [np.concatenate(([0.0], np.cumsum(each))) for each in powers]
        self._valued = [np.concatenate(([0.0], np.cumsum(each * (course - self._mean)))) for each in powers]

    def fitted(
        self, starts: Values, width: float, power: int, total: float, way: int
    ) -> tuple[Values, Values]:
        """Heights of the rise, and the squares that are left, by start."""
        begin = np.searchsorted(self._clock, starts - _EVEN)
        end = np.searchsorted(self._clock, starts + width - _EVEN)
        shape = self._sum(self._plain, begin, end, starts, width, power)
        squares = self._sum(self._plain, begin, end, starts, width, 2 * power) - shape**2 / self._count
        with_values = self._sum(self._valued, begin, end, starts, width, power)
        with np.errstate(invalid="ignore", divide="ignore"):
            height = np.where(squares > _EVEN, with_values / squares, 0.0)
        if way:
            height = np.where(height * way > 0, height, 0.0)
        return height, total - height * with_values

    @staticmethod
    def _sum(  # noqa: PLR0913, PLR0917 -- one term of a fit, by where it begins and ends
        sums: list[Values], begin: Values, end: Values, starts: Values, width: float, power: int
    ) -> Values:
        """Of the shape to a power: ((t - start) / width) ** power while it rises, and 1 from there on."""
        after = sums[0][-1] - sums[0][end]
        if not width:
            return after
        rising = np.zeros(len(starts))
        factor = np.ones(len(starts))
        choose = 1
        for step in range(power + 1):
            between = sums[power - step]
            rising += choose * factor * (between[end] - between[begin])
            factor = factor * -starts
            choose = choose * (power - step) // (step + 1)
        return rising / width**power + after


_EVEN = 1e-9
