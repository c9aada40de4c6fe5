"""The best way of cutting a series into stretches, found exactly: each is a level or a line, and each costs.

    breaks(values, penalty, shortest)    # places where a new stretch begins

The cost of a stretch is the sum of squares about its mean, or about its line of least squares and a penalty more where
that is less; each stretch costs a penalty besides. The least sum over all partitions is found by dynamic programming
over where the last stretch begins (Jackson et al. 2005, optimal partitioning).

Not every beginning has to be tried at every place, which is what makes this fast: a stretch that begins later never
costs more, so the best of a run of beginnings lies above the least sum up to any of them plus the cost of the last
one's stretch. Runs whose bound is above the best found so far are left out, and nothing can be lost by it.
With numba that takes 0.1 ms for 1,440 values; without it all beginnings are tried, and the answer is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from analysis.frame import Values

_RUN = 32
"""Beginnings that have one bound: fewer take more bounds, more are left out less often."""
_NEVER = 1e300
"""Above any sum; an infinity would make NaN of differences."""
_SAME = 1e-9
"""Sums nearer to each other than this are one, of which the longest last stretch is taken."""

Places = int | NDArray[np.intp]

_Sums = Callable[[Values, float, int], Values]


def breaks(values: Values, penalty: float, shortest: int) -> tuple[int, ...]:
    """Where stretches begin, the first left out. ``values``: shape (n,), all known, some 1 in size.

    ``penalty``: what a stretch costs, in squares of the values' unit. ``shortest``: values in a stretch, at least.
    Raises ValueError: a penalty or a length that isn't above 0, values that aren't known.
    """
    if penalty <= 0 or shortest < 1:
        raise ValueError(f"a penalty of {penalty} and stretches of {shortest}: both have to be above 0")
    if not np.isfinite(values).all():
        raise ValueError("values that are not known can't be cut: leave them out")
    if len(values) < 2 * shortest:
        return ()
    least = _least_sums()(np.ascontiguousarray(values, dtype=np.float64), penalty, shortest)
    return _traced(values, least, penalty, shortest)


@cache
def _least_sums() -> _Sums:
    """The fast way where there is numba, else the plain one."""
    if find_spec("numba") is None:
        return least_sums
    import numba  # noqa: PLC0415 - optional, and a second of loading

    compiled: _Sums = numba.njit(cache=True, fastmath={"nnan", "nsz"})(_least_sums_by_runs)
    return compiled


def totals(values: Values) -> tuple[Values, Values, Values]:
    """Running sums of values, of squares, and of values by place, each of shape (n + 1,)."""
    places = np.arange(len(values)) + 0.5
    parts = (values, values * values, values * places)
    first, second, third = (np.concatenate(([0.0], np.cumsum(each))) for each in parts)
    return first, second, third


def cost(sums: tuple[Values, Values, Values], begin: Places, end: Places, penalty: float) -> Values:
    """Of stretches from ``begin`` to before ``end``, one or many of either, as the module says."""
    total, squares, by_place = sums
    length = np.asarray(end - begin, dtype=np.float64)
    rise = total[end] - total[begin]
    level = squares[end] - squares[begin] - rise * rise / length
    tilt = by_place[end] - by_place[begin] - 0.5 * (begin + end) * rise
    # two values are always on a line
    explained = np.where(length > 2, 12.0 * tilt * tilt / np.maximum(length * (length * length - 1.0), 1.0), 0.0)  # noqa: PLR2004
    return np.asarray(level - np.maximum(explained - penalty, 0.0), dtype=np.float64)


def least_sums(values: Values, penalty: float, shortest: int) -> Values:
    """The least sum of the first t values for each t, shape (n + 1,): all beginnings tried."""
    sums = totals(values)
    least = np.full(len(values) + 1, _NEVER)
    least[0] = 0.0
    for end in range(shortest, len(values) + 1):
        begins = np.arange(end - shortest + 1)
        least[end] = (least[begins] + cost(sums, begins, end, penalty)).min() + penalty
    return least


def _traced(values: Values, least: Values, penalty: float, shortest: int) -> tuple[int, ...]:
    """Back from the end: of each stretch the beginning that gave its sum."""
    sums, end, found = totals(values), len(values), []
    while end > 0:
        begins = np.arange(end - shortest + 1)
        tried = least[begins] + cost(sums, begins, end, penalty)
        end = int(np.flatnonzero(tried <= tried.min() + _SAME)[0])
        found.append(end)
    return tuple(sorted(found[:-1]))


def _least_sums_by_runs(values: Values, penalty: float, shortest: int) -> Values:
    """The same as ``least_sums``, for numba: by runs of beginnings, most of which are left out by their bound.

    Run 0 is the place 0 alone, run r the places (r - 1) * RUN + 1 to r * RUN.
    """
    count = len(values)
    total, squares, by_place = np.zeros(count + 1), np.zeros(count + 1), np.zeros(count + 1)
    for place in range(count):
        total[place + 1] = total[place] + values[place]
        squares[place + 1] = squares[place] + values[place] * values[place]
        by_place[place + 1] = by_place[place] + values[place] * (place + 0.5)
    # reciprocals by length, the longest first, so that both tables and sums are read in one direction
    of_level, of_tilt = np.zeros(count + 1), np.zeros(count + 1)
    for length in range(1, count + 1):
        of_level[count - length] = 1.0 / length
        if length > 2:  # noqa: PLR2004 - two values are always on a line
            of_tilt[count - length] = 12.0 / (length * (length * length - 1.0))
    runs = (count + _RUN - 1) // _RUN + 1
    least, above = np.full(count + 1, _NEVER), np.full(count + 1, _NEVER)  # above: less the squares up to there
    least[0] = above[0] = 0.0
    of_run = np.full(runs, _NEVER)
    of_run[0] = 0.0
    bounds = np.empty(runs)
    before = 0
    for end in range(shortest, count + 1):
        newest = end - shortest
        shift, middle = count - end, 0.5 * end
        rise = total[end] - total[before]
        tilt = by_place[end] - by_place[before] - (middle + 0.5 * before) * rise
        best = (
            above[before]
            - rise * rise * of_level[shift + before]
            - max(tilt * tilt * of_tilt[shift + before] - penalty, 0.0)
        )
        whole = newest // _RUN
        for run in range(whole + 1):
            last = run * _RUN
            rise = total[end] - total[last]
            tilt = by_place[end] - by_place[last] - (middle + 0.5 * last) * rise
            bounds[run] = (
                of_run[run]
                - squares[last]
                - rise * rise * of_level[shift + last]
                - max(tilt * tilt * of_tilt[shift + last] - penalty, 0.0)
            )
        for run in range(whole + 1, -1, -1):
            if run <= whole and bounds[run] > best + _SAME:
                continue
            first, last = max(0, (run - 1) * _RUN + 1), min(run * _RUN, newest)
            lowest = _NEVER
            for begin in range(first, last + 1):
                rise = total[end] - total[begin]
                tilt = by_place[end] - by_place[begin] - (middle + 0.5 * begin) * rise
                lowest = min(
                    lowest,
                    above[begin]
                    - rise * rise * of_level[shift + begin]
                    - max(tilt * tilt * of_tilt[shift + begin] - penalty, 0.0),
                )
            if lowest < best:
                best, before = lowest, first
        least[end] = best + squares[end] + penalty
        above[end] = best + penalty
        own = (end + _RUN - 1) // _RUN
        of_run[own] = min(of_run[own], least[end])
    return least
