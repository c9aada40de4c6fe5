"""An engine beside those that do the same work: where load is shared out, they are the best baseline there is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from analysis.cascade.subject import Subject
from analysis.frame import Values

_MOST_PEERS = 15


def smoothed(values: Values, seconds: float, step_seconds: float) -> Values:
    """Means of the trailing time, shape (n,); NaN where less than half of it is known."""
    steps = max(1, round(seconds / step_seconds))
    known = ~np.isnan(values)
    sums = np.cumsum(np.where(known, values, 0.0))
    counts = np.cumsum(known)
    sums[steps:] = sums[steps:] - sums[:-steps].copy()
    counts[steps:] = counts[steps:] - counts[:-steps].copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts * 2 >= steps, sums / counts, np.nan)


def peers_median(
    subject: Subject, number: Callable[[Subject], Values | None], seconds: float
) -> Values | None:
    """The median of a number of the other engines, each over the trailing time; shape (n,). None: nobody tells it.

    Of a large fleet some of the others stand for all of them.
    """
    fleet, step = subject.fleet, subject.frame.step_seconds
    names = [name for name in fleet.engines if name != subject.engine]
    every = max(1, len(names) // _MOST_PEERS)
    told = (number(Subject(fleet, name)) for name in names[::every])
    others = [smoothed(each, seconds, step) for each in told if each is not None]
    if not others:
        return None
    stacked = np.stack(others)
    unknown = np.isnan(stacked).all(axis=0)
    stacked[:, unknown] = 0.0
    return np.where(unknown, np.nan, np.nanmedian(stacked, axis=0))


def beside_peers(
    subject: Subject, number: Callable[[Subject], Values | None], seconds: float
) -> Values | None:
    """A number of an engine over the median of the others', each over the trailing time; shape (n,).

    None: there are no others, or nobody tells it.
    """
    own, usual = number(subject), peers_median(subject, number, seconds)
    if own is None or usual is None:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(usual > 0, smoothed(own, seconds, subject.frame.step_seconds) / usual, np.nan)
