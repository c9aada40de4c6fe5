"""Puts samples as they were scraped onto one even grid: finds the step, and takes a scrape that was late for due.

A scrape that is due just at an instant of the grid comes a few milliseconds before or after it. Taken by the letter,
half of those would stand one step later: a hole here and two samples in one step there. So a series whose samples lie
around the instants is moved by a small part of the step, as a whole and always the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from analysis.frame import Frame, Key, Values, grid, on_grid
from analysis.history.samples import Samples

_LATE = 0.1
"""The part of a step that a scrape may come after the instant it was due at."""
_SAME = 0.1
"""Intervals within this part of a step are that step."""
_WHOLE = 0.02
"""An interval within this part of whole seconds is whole seconds: nobody scrapes each 14.999 s."""


def interval_of(times: Values) -> float | None:
    """What mostly lies between two samples, in seconds; None for less than two of them."""
    if len(times) < 2:  # noqa: PLR2004
        return None
    middle = float(np.median(np.diff(times)))
    whole = round(middle)
    return float(whole) if whole and abs(middle - whole) <= _WHOLE * whole else round(middle, 3)


def common(intervals: Counter[float]) -> float | None:
    """The interval that most series have, of several equally common ones the longest; None where there is none."""
    return max(intervals, key=lambda each: (intervals[each], each)) if intervals else None


def mixed(intervals: Counter[float], step_seconds: float) -> str:
    """One line about series whose interval is not the step; empty where all have it."""
    others = {
        each: count for each, count in intervals.items() if abs(each - step_seconds) > _SAME * step_seconds
    }
    if not others:
        return ""
    all_of_them = sum(intervals.values())
    told = ", ".join(f"{each:g} s" for each, _ in Counter(others).most_common(3))
    share = sum(others.values()) / all_of_them
    return (
        f"steps are mixed: {share:.0%} of the series come every {told}, not every {step_seconds:g} s;"
        " those that come more often are thinned, those that come less often have gaps"
    )


class Columns:
    """Gathers series of pieces of a range, in any order of the pieces, into one frame."""

    def __init__(self, start: float, end: float, step_seconds: float) -> None:
        """From ``start`` to before ``end``, in seconds."""
        self._instants = grid(start, end, step_seconds)
        self._step = step_seconds
        self._places: dict[Key, int] = {}
        # one column after the other: it grows where it lies, and no frame is ever there twice
        self._flat: Values = np.empty(0)
        self._early: dict[Key, float] = {}
        self.intervals: Counter[float] = Counter()
        """How many series of a piece came how often."""

    def __len__(self) -> int:
        """How many series there are."""
        return len(self._places)

    @property
    def rows(self) -> int:
        """How many instants there are."""
        return len(self._instants)

    def put(self, samples: Samples, start: float, end: float) -> None:
        """Samples of a piece: all later than ``start``, none later than ``end``."""
        samples = _known(samples)
        interval = interval_of(samples.times)
        if interval is not None:
            self.intervals[interval] += 1
        if not len(samples.times) or not len(self._instants):
            return
        early = self._early.get(samples.key)
        if early is None:
            early = self._early[samples.key] = _early(samples.times, self._step)
        first = float(self._instants[0])
        low = max(0, int(np.ceil(round((start - early - first) / self._step, 6))))
        high = int(np.ceil(round((end - early - first) / self._step, 6)))
        own = self._instants[low : high + 1]
        if not len(own):
            return
        placed = on_grid(own, samples.times - early, samples.values, self._step)
        target = self._column(samples.key)[low : high + 1]
        there = ~np.isnan(placed)
        if high < len(
            self._instants
        ):  # the step that the next piece begins in: its samples are the later ones
            there[-1] &= np.isnan(target[-1])
        target[there] = placed[there]

    def frame(self) -> Frame | None:
        """From the first sample to the last; None where there is none. Nothing can be put afterwards."""
        rows = len(self._instants)
        keys = sorted(self._places)
        self._arrange([self._places[key] for key in keys])
        spans = [np.flatnonzero(~np.isnan(self._flat[place * rows :][:rows])) for place in range(len(keys))]
        there = [(place, span[0], span[-1]) for place, span in enumerate(spans) if len(span)]
        if not there:
            return None
        low, high = min(int(first) for _, first, _ in there), max(int(last) for _, _, last in there) + 1
        kept = high - low
        for to, (place, _, _) in enumerate(there):
            # each moves towards the beginning, where nothing is needed any more
            self._flat[to * kept :][:kept] = self._flat[place * rows + low :][:kept]
        self._flat.resize(kept * len(there), refcheck=False)
        values = self._flat.reshape((kept, len(there)), order="F")
        return Frame(
            self._instants[low:high], self._step, tuple(keys[place] for place, _, _ in there), values
        )

    def _column(self, key: Key) -> Values:
        """The column of a series, to be written to before the next one is asked for."""
        rows = len(self._instants)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self._places)
            if len(self._flat) < (place + 1) * rows:
                self._flat.resize((place + 1 + place // 16) * rows, refcheck=False)
            self._flat[place * rows :][:rows] = np.nan
        return self._flat[place * rows :][:rows]

    def _arrange(self, order: list[int]) -> None:
        """Put the column of ``order[i]`` at place i for all i, with room for one more only."""
        rows = len(self._instants)
        done = [False] * len(order)
        for first in range(len(order)):
            if done[first]:
                continue
            spare = self._flat[first * rows :][:rows].copy()
            place = first
            while order[place] != first:
                self._flat[place * rows :][:rows] = self._flat[order[place] * rows :][:rows]
                done[place] = True
                place = order[place]
            self._flat[place * rows :][:rows] = spare
            done[place] = True


def intervals_of(series: Iterable[Samples]) -> Counter[float]:
    """How many of the series come how often."""
    found = (interval_of(_known(each).times) for each in series)
    return Counter(each for each in found if each is not None)


def _known(samples: Samples) -> Samples:
    """Those that are a number. An export has markers among them of when a series was gone, as if it had been there."""
    there = ~np.isnan(samples.values)
    return samples if there.all() else Samples(samples.key, samples.times[there], samples.values[there])


def _early(times: Values, step_seconds: float) -> float:
    """By how much to move a series: it lies around the instants, or doesn't."""
    turns = np.exp(2j * np.pi * times / step_seconds).mean()
    phase = float(np.angle(turns)) / (2 * np.pi)
    near = _LATE / 2
    return _LATE * step_seconds if abs(phase) <= near and abs(turns) > 0.5 else 0.0  # noqa: PLR2004 - else it has no phase
