"""What a series is worth at each hour of the week, by its other weeks: load that comes each Monday is no event."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
HOURS = 168
_HOUR_SECONDS = 3600.0
LEAST_WEEKS = 2
SURE_WEEKS = 4
"""From so many on the median of the others is right also where one of them had an incident."""


def weeks(times: Values, step_seconds: float) -> float:
    """How long a history of even instants, shape (n,), is."""
    return len(times) * step_seconds / (HOURS * _HOUR_SECONDS)


def expected(values: Values, times: Values) -> Values:
    """What of the other weeks is nearest to the value of each instant, shape (n,); NaN where no other week knows.

    The median of their medians at that hour, or what a line from the middle of an hour to that of the next has: load
    may come with the hour or gradually. ``values``: NaN where not known; ``times``: seconds since the epoch.
    """
    hour = np.floor(times / _HOUR_SECONDS).astype(np.int64)
    first = int(hour[0])
    count = int(hour[-1]) - first + 1
    edges = np.searchsorted(hour, np.arange(first, first + count + 1))
    others = _of_other_weeks(values, edges)
    known = ~np.isnan(others)
    if not known.any():
        return np.full(len(values), np.nan)
    middles = (first + np.arange(count) + 0.5) * _HOUR_SECONDS
    drawn = np.interp(times, middles[known], others[known])
    own = others[hour - first]
    return (
        np.clip(np.where(np.isnan(values), own, values), np.fmin(drawn, own), np.fmax(drawn, own)) + 0 * own
    )


def _of_other_weeks(values: Values, edges: NDArray[np.int64]) -> Values:
    """Of each hour, which begins and ends at ``edges``."""
    count = len(edges) - 1
    table = np.full(-(-count // HOURS) * HOURS, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of hours and weeks that nothing is known of
        for place, (begin, end) in enumerate(pairwise(edges.tolist())):
            if begin < end:
                table[place] = np.nanmedian(values[begin:end])
        by_week = table.reshape(-1, HOURS)
        weekly = [np.nanmedian(np.delete(by_week, week, axis=0), axis=0) for week in range(len(by_week))]
    return np.concatenate(weekly)[:count]
