"""Since when: the instant at which a number begins to leave what was usual, sought before what proves a cause.

Alerts hold late by nature: they look at trailing minutes, and pools fill before anybody suffers. What goes wrong shows
as a bend: a number that had stood at a level and then ramps, since a step in what is asked for fills an engine at a
rate, and a trailing window makes a ramp of a step. So a level with a ramp after it is fitted, and its corner taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.cascade.stretches import stretches
from analysis.cascade.subject import Fleet, Subject
from analysis.cascade.template import Start, Template
from analysis.frame import Values

_AFTER_SECONDS = 60.0

_LEAST_POINTS = 4
"""Before and after a corner, fewer are no level and no ramp."""
_TOP_SHARE = 0.8
"""Of the rise: beyond it a ramp bends again, into whatever is the limit."""


@dataclass(frozen=True, slots=True)
class Bend:
    """``at``: when it begins. ``strength``: how many spreads of what was usual the ramp rises above it."""

    at: float
    strength: float


def bend(
    times: Values, values: Values, anchor: float, lead_seconds: float, after_seconds: float
) -> Bend | None:
    """The corner of a number within ``lead_seconds`` before ``anchor``, the proof; shape (n,) both.

    It may go on to rise for ``after_seconds`` beyond the anchor. None: too little is known, or it didn't bend.
    """
    inside = (times >= anchor - lead_seconds) & (times <= anchor + after_seconds) & ~np.isnan(values)
    at, course = times[inside], values[inside]
    if len(course) < 2 * _LEAST_POINTS:
        return None
    before = course[: max(_LEAST_POINTS, len(course) // 4)]
    usual = float(np.median(before))
    away = course - usual
    sign = 1.0 if np.max(away) >= -np.min(away) else -1.0
    away = sign * away
    top = float(np.max(away))
    if top <= 0:
        return None
    last = int(np.argmax(away >= _TOP_SHARE * top)) + 1
    last = max(last, 2 * _LEAST_POINTS)
    return _corner(at[:last], away[:last])


def _corner(at: Values, away: Values) -> Bend | None:
    """Least squares of a + b max(0, t - corner) over all corners, by running sums from the end: O(n)."""
    n = len(at)
    clock = at - at[0]
    best: tuple[float, int, float] | None = None
    total = float(np.sum((away - away.mean()) ** 2))
    for corner in range(_LEAST_POINTS - 1, n - 1):
        ramp = np.maximum(0.0, clock - clock[corner])
        centred = ramp - ramp.mean()
        slope = float(centred @ away) / float(centred @ centred)
        if slope <= 0:
            continue
        left = total - slope * float(centred @ away)
        if best is None or left < best[0]:
            best = (left, corner, slope)
    if best is None:
        return None
    left, corner, slope = best
    spread = float(np.sqrt(max(left, 0.0) / n))
    rise = slope * float(clock[-1] - clock[corner])
    return Bend(float(at[corner]), rise / spread if spread > 0 else np.inf)


def onset(template: Template, fleet: Fleet, affected: Sequence[str], proof: float) -> tuple[float, float]:
    """When a cause began, and give or take how many seconds; never later than ``proof``, its necessary evidence.

    An estimate: a first sign without a break up to the proof, else the strongest bend before it, else the proof.
    """
    subjects = [Subject(fleet, name) for name in affected] or [Subject(fleet)]
    frame = fleet.frame
    step = frame.step_seconds
    if template.first_sign is not None:
        since = [
            each.since
            for subject in subjects
            if (sign := template.first_sign(subject)) is not None
            for each in stretches(frame.times, sign.held, sign.known, step, step)
            if each.since <= proof <= each.until + sign.signal.window_seconds
        ]
        return (min(since, default=proof), step)
    bends = [
        found
        for start in template.starts
        if (course := _summed(start, subjects)) is not None
        and (found := bend(frame.times, course, proof, template.lead_seconds, _AFTER_SECONDS)) is not None
    ]
    if not bends:
        return (proof, template.lead_seconds)
    best = max(bends, key=lambda each: each.strength)
    return (min(best.at, proof), 2 * step)


def _summed(start: Start, subjects: Sequence[Subject]) -> Values | None:
    courses = [course for subject in subjects if (course := start.course(subject)) is not None]
    return None if not courses else np.asarray(np.sum(courses, axis=0), dtype=np.float64)
