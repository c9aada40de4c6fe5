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

import numpy as np
from numpy.typing import NDArray

from analysis.compiling import compiled, has_numba
from analysis.frame import Values

_RUN = 24
"""Beginnings that have one bound: fewer take more bounds, more are left out less often."""
_TWO = 2
"""Values are always on a line: it says nothing of them."""
_NEVER = 1e300
"""Above any sum; an infinity would make NaN of differences."""
_SAME = 1e-9
"""Sums nearer to each other than this are one, of which the longest last stretch is taken."""

Places = int | NDArray[np.intp]

_Cutting = Callable[[Values, float, int], NDArray[np.intp]]


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
    found = _cutting()(np.ascontiguousarray(values, dtype=np.float64), penalty, shortest)
    return tuple(int(each) for each in found)


@cache
def _cutting() -> _Cutting:
    """The fast way where there is numba, else the plain one."""
    return compiled(cut_by_runs, all_known=True) if has_numba() else cut


def totals(values: Values) -> tuple[Values, Values, Values]:
    """Running sums of values, of squares, and of values by place, each of shape (n + 1,)."""
    sums = np.zeros((3, len(values) + 1))
    for each, part in zip(
        sums, (values, values * values, values * (np.arange(len(values)) + 0.5)), strict=True
    ):
        np.cumsum(part, out=each[1:])
    return sums[0], sums[1], sums[2]


def cost(sums: tuple[Values, Values, Values], begin: Places, end: Places, penalty: float) -> Values:
    """Of stretches from ``begin`` to before ``end``, one or many of either, as the module says."""
    total, squares, by_place = sums
    length = np.asarray(end - begin, dtype=np.float64)
    rise = total[end] - total[begin]
    level = squares[end] - squares[begin] - rise * rise / length
    tilt = by_place[end] - by_place[begin] - 0.5 * (begin + end) * rise
    spread_of_places = length * (length * length - 1.0) / 12.0
    explained = np.where(length > _TWO, tilt * tilt / np.maximum(spread_of_places, 0.5), 0.0)
    return np.asarray(level - np.maximum(explained - penalty, 0.0), dtype=np.float64)


def cut(values: Values, penalty: float, shortest: int) -> NDArray[np.intp]:
    """Where stretches begin, in order: all beginnings tried."""
    sums = totals(values)
    least = np.full(len(values) + 1, _NEVER)
    least[0] = 0.0

    def tried(end: int) -> Values:
        begins = np.arange(end - shortest + 1)
        return np.asarray(least[begins] + cost(sums, begins, end, penalty), dtype=np.float64)

    for end in range(shortest, len(values) + 1):
        least[end] = tried(end).min() + penalty
    found = []
    end = len(values)
    while end > 0:
        last = tried(end)
        end = int(np.flatnonzero(last <= last.min() + _SAME)[0])
        found.append(end)
    return np.array(found[-2::-1], dtype=np.intp)


def cut_by_runs(  # noqa: C901, PLR0912, PLR0915 - one loop that a compiler sees whole
    values: Values, penalty: float, shortest: int
) -> NDArray[np.intp]:
    """The same as ``cut``, for numba: by runs of beginnings, most of which are left out by their bound.

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
        if length > _TWO:
            of_tilt[count - length] = 12.0 / (length * (length * length - 1.0))
    runs = (count + _RUN - 1) // _RUN + 1
    least, above = (
        np.full(count + 1, _NEVER),
        np.full(count + 1, _NEVER),
    )  # above: less the squares up to there
    least[0] = above[0] = 0.0
    of_run = np.full(runs, _NEVER)
    of_run[0] = 0.0
    bounds, inside = np.empty(runs), np.empty(_RUN)
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
                tried = (
                    above[begin]
                    - rise * rise * of_level[shift + begin]
                    - max(tilt * tilt * of_tilt[shift + begin] - penalty, 0.0)
                )
                inside[begin - first] = tried
                lowest = min(lowest, tried)
            if lowest < best:
                # the next search starts from here, and the nearer that is to its best, the more it leaves out
                best = lowest
                before = first + int(np.argmin(inside[: last - first + 1]))
        least[end] = best + squares[end] + penalty
        above[end] = best + penalty
        own = (end + _RUN - 1) // _RUN
        of_run[own] = min(of_run[own], least[end])
    found = np.empty(count // shortest + 1, dtype=np.intp)
    cuts, end = 0, count
    while end > 0:
        shift, middle, lowest = count - end, 0.5 * end, _NEVER
        for again in range(2):
            for begin in range(end - shortest + 1):
                rise = total[end] - total[begin]
                tilt = by_place[end] - by_place[begin] - (middle + 0.5 * begin) * rise
                tried = (
                    above[begin]
                    - rise * rise * of_level[shift + begin]
                    - max(tilt * tilt * of_tilt[shift + begin] - penalty, 0.0)
                )
                if again == 0:
                    lowest = min(lowest, tried)
                elif tried <= lowest + _SAME:
                    end = begin
                    break
        found[cuts] = end
        cuts += 1
    return found[: cuts - 1][::-1]
