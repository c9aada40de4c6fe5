"""Where several numbers begin to leave what was usual together: the corner of a level and a rise.

What goes wrong shows at a stroke, as a rise to another level (a trailing mean makes one of a step), or ever faster,
where what is asked for grows itself and what is held adds it up. Each such course is fitted by least squares from each
instant on, and how well it fits there is that instant's likelihood. Who is in work stays for a while: counts are fitted
less their share of the one before (Cochrane and Orcutt, 1949), so that what is new at an instant is what counts.
Numbers that move of the same thing begin to do so together: their likelihoods multiply, and one that jumps about
doesn't outvote one that tells exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.cascade.bends import Bend
from analysis.frame import Values
from analysis.robust import scale_of_sorted

Places = NDArray[np.intp]

_LEAST_POINTS = 4
"""Before and after a bend: fewer are no level."""
_CLIPPED_AT = 5.0
"""Spreads from the middle, beyond which a value is taken as no further away: one wild value is no level."""
_LEAST_LEFT = 0.002
"""Of the range: what a fit leaves is never less, or numbers that never vary would outvote all others."""
_MOST_ALIKE = 0.95
"""How alike what is left is from one value to the next: beyond it hardly anything would be new."""
_SMOOTH_COSTS = 2.0
"""Likelihood, by its logarithm: what grows ever faster can always have begun a little sooner, and has to fit better."""
_ROUNDS = 3
"""Of fitting, and of seeing how alike what is left is."""


class Form(NamedTuple):
    """A rise within so many seconds to another level: by ``power`` 1 evenly, by 2 ever faster."""

    seconds: float
    power: int


_FORMS = (
    Form(0.0, 1),
    *(Form(seconds, 1) for seconds in (10.0, 20.0, 40.0, 80.0, 160.0, 320.0)),
    *(Form(seconds, 2) for seconds in (20.0, 40.0, 80.0, 160.0, 320.0)),
)
_LONGER = (1.0, 2.0, 4.0)
"""Times the window of a trailing mean: within what it rises after a step, or after less than that."""


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """One number over time: ``values`` of shape (n,), NaN where not known.

    ``way``: 1 it rises, -1 it falls, 0 either. ``counted``: it is a count or goes with one, so that it varies as its
    root does; not below 0. ``window_seconds``: it is a mean of so long, and a step shows as a rise within it; 0: it
    isn't.
    """

    values: Values
    way: int = 0
    counted: bool = False
    window_seconds: float = 0.0

    @property
    def forms(self) -> Sequence[Form]:
        """How it may rise."""
        if not self.window_seconds:
            return _FORMS
        return [Form(times * self.window_seconds, 1) for times in _LONGER]


def bend_of_all(
    times: Values, courses: Iterable[Course], first: float, last: float, latest: float = np.inf
) -> Bend | None:
    """Where numbers are likeliest to begin to move together, between two instants and not after ``latest``.

    ``times``: evenly apart. None: too little is known of any, or none moves.
    """
    inside = (times >= first) & (times <= last)
    at = times[inside]
    corners = np.arange(_LEAST_POINTS, len(at) - _LEAST_POINTS + 1)
    corners = corners[at[corners] <= latest]
    if not len(corners):
        return None
    found = []
    for course in courses:
        values = course.values[inside]
        known = values[~np.isnan(values)]
        if len(known) >= 2 * _LEAST_POINTS and np.ptp(known) > 0:
            found.append(_profile(values, course, float(at[1] - at[0]), corners))
    if not found:
        return None
    place = int(np.argmax(np.sum([each.likelihood for each in found], axis=0)))
    return Bend(float(at[corners[place]]), max(float(each.strength[place]) for each in found))


class _Profile(NamedTuple):
    """Of one number, by corner: shape (corners,). ``likelihood``: its logarithm, above that of no bend at all."""

    likelihood: Values
    strength: Values


def _profile(values: Values, course: Course, step: float, corners: Places) -> _Profile:
    numbers = _comparable(values, counted=course.counted)
    # longer rises than the window are one and the same: they never end in it
    forms = [each for each in course.forms if each.seconds < 2 * len(numbers) * step] or course.forms[:1]
    shapes = [_shape(each, len(numbers), step) for each in forms]
    costs = [float(np.exp(2 * _SMOOTH_COSTS * (each.power - 1) / len(numbers))) for each in forms]
    count, alike = len(numbers), 0.0
    for _ in range(_ROUNDS if course.counted else 1):
        found = _fitted(numbers, shapes, costs, corners, alike, course.way)
        place = int(np.argmin(found.left))
        remains = numbers.copy()
        remains[corners[place] :] -= (
            found.height[place] * shapes[found.form[place]][: len(numbers) - corners[place]]
        )
        remains -= remains.mean()
        squares = max(float(remains @ remains), np.finfo(float).tiny)
        alike = min(max(float(remains[1:] @ remains[:-1]) / squares, 0.0), _MOST_ALIKE)
    # values that hang together say as much as fewer that don't
    independent = count if course.counted else count * (1 - alike) / (1 + alike)
    least = _LEAST_LEFT * float(np.ptp(numbers))
    floor = count * (least * (1 - alike if course.counted else 1.0)) ** 2
    return _Profile(
        0.5 * independent * np.log((found.total + floor) / (found.left + floor)),
        np.abs(found.height) / max(np.sqrt(squares / count), least),
    )


class _Fitted(NamedTuple):
    """By corner, of its best form: ``height`` of the rise, squares that are ``left`` of the ``total``."""

    height: Values
    left: Values
    form: Places
    total: float


def _fitted(  # noqa: PLR0913, PLR0917 -- what is fitted to what, and how
    numbers: Values,
    shapes: Sequence[Values],
    costs: Sequence[float],
    corners: Places,
    alike: float,
    way: int,
) -> _Fitted:
    """All shapes from all corners on; of numbers and shapes alike what is new of each value counts.

    ``costs``: by shape, how many times what it leaves counts.
    """
    count = len(numbers)
    new = np.concatenate(([0.0], numbers[1:] - alike * numbers[:-1]))
    new[1:] -= new[1:].mean()
    total = float(new @ new)
    padded = np.concatenate((new, np.zeros(count)))
    height, form = np.zeros(len(corners)), np.zeros(len(corners), dtype=int)
    left = np.full(len(corners), np.inf)
    for number, (shape, cost) in enumerate(zip(shapes, costs, strict=True)):
        fresh = shape - alike * np.concatenate(([0.0], shape[:-1]))
        sums, squares = np.cumsum(fresh), np.cumsum(fresh**2)
        with_numbers = np.correlate(padded, fresh, "valid")[corners]
        own = squares[count - 1 - corners] - sums[count - 1 - corners] ** 2 / (count - 1)
        high = with_numbers / np.maximum(own, np.finfo(float).tiny)
        if way:
            high = np.where(high * way > 0, high, 0.0)
        leaves = np.where(own > 0, np.maximum(total - high * with_numbers, 0.0) * cost, total)
        better = leaves < left
        height, form = np.where(better, high, height), np.where(better, number, form)
        left = np.where(better, leaves, left)
    return _Fitted(height, left, form, total)


def _shape(form: Form, count: int, step: float) -> Values:
    """Its height from a corner on, shape (count,)."""
    if not form.seconds:
        return np.ones(count)
    return np.asarray(np.minimum(np.arange(count) * step / form.seconds, 1.0) ** form.power, dtype=np.float64)


def _comparable(values: Values, *, counted: bool) -> Values:
    """Without units, wild values clipped, and in holes as it was last."""
    known = np.flatnonzero(~np.isnan(values))
    filled = values[known[np.maximum(np.searchsorted(known, np.arange(len(values)), "right") - 1, 0)]]
    filled = np.sqrt(np.maximum(filled, 0.0)) if counted else filled
    scale = scale_of_sorted(np.sort(filled))
    spread = scale.spread or float(np.ptp(filled))
    away = (filled - scale.middle) / spread
    return np.asarray(np.clip(away, -_CLIPPED_AT, _CLIPPED_AT), dtype=np.float64)
