"""Where a number begins to leave what was usual: the corner of a level and a ramp, or the edge of a step.

Alerts hold late by nature: they look at trailing minutes, and pools fill before anybody suffers. What goes wrong shows
sooner, as a ramp (a step in what is asked for fills an engine at a rate, and a trailing window makes a ramp of a step)
or as a step. Both are fitted by least squares, and the one that leaves less is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.frame import Values

_LEAST_POINTS = 4
"""Before and after a bend: fewer are no level."""
_TOP_SHARE = 0.8
"""Of the rise: beyond it a ramp bends again, into whatever is the limit."""


@dataclass(frozen=True, slots=True)
class Bend:
    """``at``: when it begins. ``strength``: by how many spreads of what is left by the fit the number moves."""

    at: float
    strength: float


def bend(times: Values, values: Values, first: float, last: float) -> Bend | None:
    """The strongest bend of a number between two instants; ``times``, ``values``: shape (n,), NaN where not known.

    None: too little is known, or nothing moves.
    """
    inside = (times >= first) & (times <= last) & ~np.isnan(values)
    at, course = times[inside], values[inside]
    if len(course) < 2 * _LEAST_POINTS or np.ptp(course) == 0:
        return None
    found = [each for each in (_ramp(at, course), _step(at, course)) if each is not None]
    return max(found, key=lambda each: each.strength, default=None)


def _ramp(at: Values, course: Values) -> Bend | None:
    """A + b max(0, t - corner), up to where the number has done most of its way, which is where other limits begin."""
    away = course - float(np.median(course[: max(_LEAST_POINTS, len(course) // 4)]))
    if np.max(away) < -np.min(away):
        away = -away
    reached = int(np.argmax(away >= _TOP_SHARE * float(np.max(away)))) + 1
    end = max(reached, 2 * _LEAST_POINTS)
    clock, away = at[:end] - at[0], away[:end]
    total = float(np.sum((away - away.mean()) ** 2))
    best: tuple[float, int, float] | None = None
    for corner in range(_LEAST_POINTS - 1, end - 1):
        ramp = np.maximum(0.0, clock - clock[corner])
        ramp -= ramp.mean()
        slope = float(ramp @ away) / float(ramp @ ramp)
        left = total - slope * float(ramp @ away)
        if slope > 0 and (best is None or left < best[0]):
            best = (left, corner, slope)
    if best is None:
        return None
    left, corner, slope = best
    return Bend(float(at[corner]), _strength(slope * float(clock[-1] - clock[corner]), left, end))


def _step(at: Values, course: Values) -> Bend | None:
    """One level before an instant and another from it on."""
    n = len(course)
    sums, squares = np.cumsum(course), np.cumsum(course**2)
    counts = np.arange(_LEAST_POINTS, n - _LEAST_POINTS + 1)
    before, after = sums[counts - 1], sums[-1] - sums[counts - 1]
    left = squares[-1] - before**2 / counts - after**2 / (n - counts)
    place = int(np.argmin(left))
    count = int(counts[place])
    rise = abs(float(after[place]) / (n - count) - float(before[place]) / count)
    return Bend(float(at[count]), _strength(rise, float(left[place]), n))


def _strength(rise: float, left: float, points: int) -> float:
    spread = float(np.sqrt(max(left, 0.0) / points))
    return rise / spread if spread > 0 else float(np.inf)
