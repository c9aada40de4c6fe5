"""What counters of differently timed windows rose by over the very same time.

An engine and its GPUs are each read once a second, but not at the same moment. Compared over windows
that begin and end up to a second apart, bursts that fall into that second are on one side only. So
each counter is taken at both ends by a straight line between the samples around them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from exporter.sample import Sample
from exporter.window import Window

S = TypeVar("S", bound=Sample)

MOST_APART_SECONDS = 3.0
"""Samples around an instant that are further apart tell too little of it: 3 s are 5 % of a minute."""

_TIME = attrgetter("at")


class Span(NamedTuple, Generic[S]):
    """The samples around ``start`` and around ``end``; what lies between is ``window.samples[first:last]``.

    ``around`` are the two around the start and the two around the end.
    """

    window: Window[S]
    start: float
    end: float
    first: int
    last: int
    around: tuple[S, S, S, S]

    @property
    def samples(self) -> tuple[S, ...]:
        """All of them, from the last up to the start to the first from the end on."""
        return self.window.samples[self.first : self.last + 1]

    def rise(self, counter: Callable[[S], float | None]) -> float | None:
        """What ``counter`` rose by from start to end; None where it is unknown beside an end, or fell."""
        before_start, after_start, before_end, after_end = self.around
        then = _at(before_start, after_start, counter, self.start)
        now = _at(before_end, after_end, counter, self.end)
        if then is None or now is None or not math.isfinite(now - then):
            return None
        return now - then if now >= then else None


def span(window: Window[S], start: float, end: float) -> Span[S] | None:
    """The time from ``start`` to ``end`` in ``window``.

    None where the window doesn't reach that far, something restarted in it, or the samples around an
    end are too far apart.
    """
    samples = window.samples
    first = bisect_right(samples, start, key=_TIME) - 1
    last = bisect_left(samples, end, key=_TIME)
    if first < 0 or last >= len(samples) or last <= first:
        return None
    around = samples[first], samples[first + 1], samples[last - 1], samples[last]
    before_start, after_start, before_end, after_end = around
    if window.restarted_between(before_start, after_end):
        return None
    is_told_apart = (before_start.at == start or after_start.at - before_start.at <= MOST_APART_SECONDS) and (
        after_end.at == end or after_end.at - before_end.at <= MOST_APART_SECONDS
    )
    return Span(window, start, end, first, last, around) if is_told_apart else None


def _at(before: S, after: S, counter: Callable[[S], float | None], instant: float) -> float | None:
    if instant == before.at:
        return counter(before)
    if instant == after.at:
        return counter(after)
    low, high = counter(before), counter(after)
    if low is None or high is None or high < low:
        return None
    return low + (high - low) * (instant - before.at) / (after.at - before.at)
