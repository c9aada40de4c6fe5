"""What counters of differently timed windows rose by over the very same time.

An engine and its GPUs are each read once a second, but not at the same moment. Compared over windows
that begin and end up to a second apart, bursts that fall into that second are on one side only. So
each counter is taken at both ends by a straight line between the samples around them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeVar

from exporter.sample import Sample
from exporter.window import Window

S = TypeVar("S", bound=Sample)

MOST_APART_SECONDS = 3.0
"""Samples around an instant that are further apart tell too little of it: 3 s are 5 % of a minute."""

_TIME = attrgetter("at")


def span(window: Window[S], start: float, end: float) -> tuple[S, ...] | None:
    """The samples from the last up to ``start`` to the first from ``end`` on.

    None where the window doesn't reach that far, something restarted in it, or the samples around an
    end are too far apart.
    """
    samples = window.samples
    first = bisect_right(samples, start, key=_TIME) - 1
    last = bisect_left(samples, end, key=_TIME)
    if first < 0 or last >= len(samples) or last <= first:
        return None
    found = samples[first : last + 1]
    if window.restarted_between(found[0], found[-1]):
        return None
    told_apart = (
        found[0].at == start or found[1].at - found[0].at <= MOST_APART_SECONDS,
        found[-1].at == end or found[-1].at - found[-2].at <= MOST_APART_SECONDS,
    )
    return found if all(told_apart) else None


def rise(
    samples: Sequence[S], counter: Callable[[S], float | None], start: float, end: float
) -> float | None:
    """What ``counter`` rose by from ``start`` to ``end``, of the samples of :func:`span`.

    None where it is unknown beside an end, or fell.
    """
    then = _at(samples[0], samples[1], counter, start)
    now = _at(samples[-2], samples[-1], counter, end)
    if then is None or now is None or not math.isfinite(now - then):
        return None
    return now - then if now >= then else None


def _at(before: S, after: S, counter: Callable[[S], float | None], instant: float) -> float | None:
    low, high = counter(before), counter(after)
    if instant == before.at:
        return low
    if instant == after.at:
        return high
    if low is None or high is None or high < low:
        return None
    return low + (high - low) * (instant - before.at) / (after.at - before.at)
