"""When a series went to another level, or began to climb: its change points.

    for change in change_points(values, times):
        change.time, change.before, change.after, change.strength

The series is cut into stretches of a level or a line, exactly (``analysis.partition``), on a robust scale. A stretch
costs as much as 128 log(n) of the noise from one value to the next, as a BIC for values that hang together would have
it, but never less than half a percent nor more than 8 % of all that varies: the least effect that counts, and one that
counts in any noise. The setting was chosen on half of a set of labelled series (docs/evaluation-changepoints.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analysis.frame import Frame, Key, Values
from analysis.partition import breaks, cost, totals
from analysis.robust import median, quantile_of_sorted, scale_of_sorted

NOISES = 128.0
"""Squares of noise, by log(n), that a stretch costs."""
LEAST_NOISES = 4.0
"""The same where a series is so short that a share of it may be chance: a place, a level, a slope and one more."""
LEAST_SHARE, MOST_SHARE = 0.005, 0.08
"""Of all squares: a stretch costs no less and no more."""
SHORTEST = 5
"""Values in a stretch, so that a spike is none; fewer where the series is shorter than four of them."""
FEWEST_VALUES = 12
"""Known values below which nothing is said."""
CLIPPED_AT = 5.0
"""Spreads from the middle beyond which a value is taken as no further away."""
STEADY = 0.25
"""Of a spread: what varies by less is taken as if it varied by this."""
LOGARITHM_FROM = 4.0
"""Between the quantiles of 99 % and 1 % of values above 0: from this factor on ratios count instead of differences."""
MOST_VALUES = 2880
"""Longer series are cut by the means of as many values as it takes, and each cut is then put in its exact place."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change. ``place``: of the first value after it; ``time``: that value's, None where no times were given.

    ``before``, ``after``: medians of the stretches on both sides, in the series' unit. ``strength``: how much worse the
    fit is without it, in what a stretch costs. ``after_gap``: nothing is known right before, where it may have been.
    """

    place: int
    time: float | None
    before: float
    after: float
    strength: float
    after_gap: bool


def change_points(values: Values, times: Values | None = None) -> tuple[Change, ...]:
    """All changes in order. ``values``: shape (n,), evenly spaced; NaN and infinities: not known, left out.

    Empty where nothing changed, or fewer than 12 values are known. Raises ValueError: shapes that differ.
    """
    if times is not None and times.shape != values.shape:
        raise ValueError(f"times of shape {times.shape} and values of shape {values.shape}: give one of each")
    places = np.flatnonzero(np.isfinite(values))
    if len(places) < FEWEST_VALUES:
        return ()
    known = values if len(places) == len(values) else values[places]
    comparable = _comparable(known)
    penalty = _penalty(comparable)
    cuts = _cuts(comparable, penalty)
    if not cuts:
        return ()
    ends = (0, *cuts, len(known))
    levels = [median(known[begin:end]) for begin, end in pairwise(ends)]
    strengths = _strengths(comparable, np.array(ends), penalty)
    return tuple(
        Change(
            place=int(places[cut]),
            time=None if times is None else float(times[places[cut]]),
            before=before,
            after=after,
            strength=strength,
            after_gap=bool(places[cut] - places[cut - 1] > 1),
        )
        for cut, (before, after), strength in zip(cuts, pairwise(levels), strengths, strict=True)
    )


def frame_changes(frame: Frame) -> dict[Key, tuple[Change, ...]]:
    """Of each series of a frame that changed."""
    found = {key: change_points(values, frame.times) for key, values in frame.columns()}
    return {key: changes for key, changes in found.items() if changes}


def _comparable(known: Values) -> Values:
    """Without units, outliers clipped, so that what varies does so by about 1."""
    in_order = np.sort(known)
    low, high = (quantile_of_sorted(in_order, share) for share in (0.01, 0.99))
    if in_order[0] > 0 and high > LOGARITHM_FROM * low:
        known, in_order = np.log(known), np.log(in_order)
    clipped = np.clip(scale_of_sorted(in_order).z(known), -CLIPPED_AT, CLIPPED_AT)
    clipped -= clipped.mean()
    varies = float(np.sqrt(clipped @ clipped / len(clipped)))
    return np.asarray(clipped / max(varies, STEADY), dtype=np.float64)


def _penalty(comparable: Values) -> float:
    count = len(comparable)
    steps = np.diff(comparable)
    noise = float(steps @ steps / len(steps) - steps.mean() ** 2) / 2
    of_one = float(np.log(count)) * noise
    return max(
        float(np.clip(NOISES * of_one, LEAST_SHARE * count, MOST_SHARE * count)), LEAST_NOISES * of_one
    )


def _cuts(comparable: Values, penalty: float) -> tuple[int, ...]:
    width = -(-len(comparable) // MOST_VALUES)
    if width == 1:
        return breaks(comparable, penalty, _shortest(len(comparable)))
    means = np.add.reduceat(comparable, np.arange(0, len(comparable), width)) / np.append(
        np.full((len(comparable) - 1) // width, float(width)), (len(comparable) - 1) % width + 1.0
    )
    rough = breaks(means, _penalty(means), _shortest(len(means)))
    return _exactly(comparable, [each * width for each in rough], width, penalty)


def _exactly(comparable: Values, rough: list[int], width: int, penalty: float) -> tuple[int, ...]:
    """Each cut where it is best, up to two means from where the means have it, between its neighbours."""
    sums = totals(comparable)
    ends = [0, *rough, len(comparable)]
    for place in range(1, len(ends) - 1):
        begin, end = ends[place - 1], ends[place + 1]
        first, last = max(begin + 1, ends[place] - 2 * width), min(end - 1, ends[place] + 2 * width)
        tried = np.arange(first, last + 1)
        sides = cost(sums, begin, tried, penalty) + cost(sums, tried, end, penalty)
        ends[place] = int(tried[np.argmin(sides)])
    return tuple(ends[1:-1])


def _strengths(comparable: Values, ends: NDArray[np.intp], penalty: float) -> list[float]:
    sums = totals(comparable)
    before, here, after = ends[:-2], ends[1:-1], ends[2:]
    apart = cost(sums, before, here, penalty) + cost(sums, here, after, penalty)
    return [float(each) for each in (cost(sums, before, after, penalty) - apart) / penalty]


def _shortest(count: int) -> int:
    return min(SHORTEST, count // 4)
