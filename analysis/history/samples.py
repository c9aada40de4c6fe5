"""Samples of many series as they come, from whoever has them, and how they become a frame.

Every source of history but the recorder's file goes through here: series in any order, samples in any order, late,
twice or on no even step. What had to be done to them is said in notes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.frame import Frame, Key, Values, grid
from analysis.history.history import History, HistoryError
from analysis.history.steps import is_same_step, mixed_steps, resampled, whole_step
from exporter.recorder_times import MOST_SECONDS, shown

MOST_SERIES = 100_000
"""Series taken unless told otherwise: with a day each they no longer fit into memory."""
MOST_SAMPLES = 200_000_000
"""Samples held: 4 GB."""
MOST_CELLS = 400_000_000
"""Instants times series of a frame: 3.2 GB."""

Places = NDArray[np.int32]
Progress = Callable[[float], None]
"""Is told what share of the work is done, from 0 to 1."""

Wanted = Callable[[Key], bool]
"""Says whether a series is to be read."""

_INTERVALS_LOOKED_AT = 1_000_000


class Samples(NamedTuple):
    """One series: ``times`` (seconds since the epoch, rising) and ``values``, both of shape (n,)."""

    key: Key
    times: Values
    values: Values


class TooManySeriesError(HistoryError):
    """More series than were allowed."""


class Gathered:
    """Samples so far, by series. 20 bytes of memory a sample.

    ``source`` is what errors call it. Raises TooManySeriesError from ``place`` beyond ``max_series``, and HistoryError
    from ``add`` beyond ``MOST_SAMPLES``.
    """

    def __init__(self, source: str, max_series: int = MOST_SERIES) -> None:
        self.source = source
        self.notes: list[str] = []
        self._max_series = max_series
        self._places: dict[Key, int] = {}
        self._parts: list[tuple[Places, Values, Values]] = []
        self._is_sorted = True
        self._misdated = 0

    @classmethod
    def of(cls, history: History) -> Gathered:
        """What is known in a history, at the instants of its grid, and its notes."""
        frame = history.frame
        found = cls(history.source, max(1, len(frame.keys)))
        found.notes += history.notes
        for key, values in frame.columns():
            known = ~np.isnan(values)
            found.add_series(key, frame.times[known], values[known])
        return found

    def __len__(self) -> int:
        return sum(len(times) for _, times, _ in self._parts)

    @property
    def keys(self) -> tuple[Key, ...]:
        """All series that have a place, by place."""
        return tuple(self._places)

    def place(self, key: Key) -> int:
        """The number of a series, a new one where it isn't known yet."""
        found = self._places.get(key)
        if found is None:
            if len(self._places) >= self._max_series:
                raise TooManySeriesError(
                    f"{self.source}: holds more than {self._max_series:,} series; have fewer of them in it, or ask for "
                    "fewer signals or with a larger max_series"
                )
            found = self._places[key] = len(self._places)
        return found

    def add(self, places: Places, times: Values, values: Values) -> None:
        """Take samples, each with the place of its series; all of shape (n,). A time that none can have is noted."""
        there = (times >= 0) & (times < MOST_SECONDS)
        if not there.all():
            self._note_misdated(len(times) - int(np.count_nonzero(there)))
            places, times, values = places[there], times[there], values[there]
        if len(times):
            if len(self) + len(times) > MOST_SAMPLES:
                raise HistoryError(
                    f"{self.source}: holds more than {MOST_SAMPLES:,} samples; ask for a shorter range or fewer signals"
                )
            self._parts.append((places, times, values))
            self._is_sorted = False

    def add_series(self, key: Key, times: Values, values: Values) -> None:
        """Take samples of one series."""
        self.add(np.full(len(times), self.place(key), np.int32), times, values)

    def between(self, start: float | None, end: float | None) -> Gathered:
        """Those from ``start`` to before ``end``."""
        kept = Gathered(self.source, self._max_series)
        kept.notes = self.notes
        kept._places = self._places
        for places, times, values in self._parts:
            inside = (times >= (-np.inf if start is None else start)) & (
                times < (np.inf if end is None else end)
            )
            if inside.all():
                kept.add(places, times, values)
            else:
                kept.add(places[inside], times[inside], values[inside])
        return kept

    def only(self, wanted: Callable[[Key], bool]) -> Gathered:
        """Those of series that are ``wanted``."""
        kept = Gathered(self.source, self._max_series)
        kept.notes = self.notes
        places = np.array([kept.place(key) if wanted(key) else -1 for key in self.keys], np.int32)
        for old, times, values in self._parts:
            new = places[old]
            kept.add(new[new >= 0], times[new >= 0], values[new >= 0])
        return kept

    def span(self) -> tuple[float, float] | None:
        """When the first and the last sample are; None where there is none."""
        if not self._parts:
            return None
        return (
            min(float(times.min()) for _, times, _ in self._parts),
            max(float(times.max()) for _, times, _ in self._parts),
        )

    def step_seconds(self) -> float | None:
        """The median interval between samples of a series; None: no series has two."""
        intervals = self._intervals()
        return whole_step(np.concatenate(intervals)) if intervals else None

    def series(self) -> Iterator[Samples]:
        """Each series that has a sample, by place."""
        places, times, values = self._in_order()
        keys = self.keys
        for first, last in _stretches(places):
            yield Samples(keys[places[first]], times[first:last], values[first:last])

    def framed(
        self,
        start: float | None = None,
        end: float | None = None,
        step_seconds: float | None = None,
        derived: frozenset[str] = frozenset(),
    ) -> History:
        """All of it on one even grid from ``start`` to before ``end``, of the step that is given or found.

        Of several samples in one step the last one stays. Raises HistoryError: nothing in that range, or more than
        ``MOST_CELLS`` values.
        """
        whole = self.span()
        if whole is None:
            raise HistoryError(f"{self.source}: holds no samples")
        selected = self if start is None and end is None else self.between(start, end)
        span = selected.span()
        if span is None:
            raise HistoryError(nothing_between(self.source, whole))
        places, times, values = selected._in_order()  # noqa: SLF001 - of the same class
        notes = [*self.notes]
        found = selected.step_seconds()
        step = step_seconds or found or 1.0
        first = span[0] if start is None else max(start, span[0])
        stretches = _stretches(places)
        count = round((span[1] - first) / step) + 1
        check_size(self.source, count, len(stretches))
        if found is not None and step_seconds is not None and not is_same_step(found, step):
            notes.append(resampled(found, step))
        elif found is not None:
            notes += mixed_steps(selected._intervals(), step)  # noqa: SLF001 - of the same class
        instants = grid(first, span[1] + step if end is None else min(end, span[1] + step), step)
        if not len(instants):
            raise HistoryError(no_instant(self.source, step))
        frame = np.full((len(instants), len(stretches)), np.nan, order="F")
        for column, (begin, last) in enumerate(stretches):
            rows = np.ceil(np.round((times[begin:last] - instants[0]) / step, 6)).astype(np.int64)
            inside = rows < len(instants)  # one in the last step before the end may stand after it
            # of several in one step the last one stays: numpy assigns in order
            frame[rows[inside], column] = values[begin:last][inside]
        keys = self.keys
        kept = tuple(keys[places[begin]] for begin, _ in stretches)
        return History(Frame(instants, step, kept, frame), self.source, derived, tuple(notes))

    def _note_misdated(self, count: int) -> None:
        if self._misdated:
            self.notes.remove(_misdated(self._misdated))
        self._misdated += count
        self.notes.append(_misdated(self._misdated))

    def _in_order(self) -> tuple[Places, Values, Values]:
        """All samples by place, then by time; of the same time, in the order they came."""
        if not self._is_sorted or len(self._parts) > 1:
            places, times, values = self._joined()
            if not (places[1:] >= places[:-1]).all():
                order = np.argsort(places, kind="stable")
                places, times, values = places[order], times[order], values[order]
            backwards, twice = _wrong(places, times)
            if backwards:
                order = np.lexsort((times, places))
                times, values = times[order], values[order]
                self.notes.append(
                    f"{backwards:,} samples came after a later one of their series (out of order, or a clock that was "
                    "put back); they were put in order of time"
                )
                _, twice = _wrong(places, times)
            if twice:
                self.notes.append(
                    f"{twice:,} samples are of the same time as another of their series; the last one was taken"
                )
                last = np.append((places[1:] != places[:-1]) | (np.diff(times) > 0), True)
                places, times, values = places[last], times[last], values[last]
            self._parts = [(places, times, values)]
            self._is_sorted = True
        return self._parts[0] if self._parts else (np.empty(0, np.int32), np.empty(0), np.empty(0))

    def _intervals(self) -> list[Values]:
        """Of each series the seconds between samples, evenly spread ones where there are very many."""
        places, times, _ = self._in_order()
        stride = max(1, len(times) // _INTERVALS_LOOKED_AT)
        found = []
        for first, last in _stretches(places):
            before = np.arange(first, last - 1, stride)
            if len(before):
                found.append(times[before + 1] - times[before])
        return found

    def _joined(self) -> tuple[Places, Values, Values]:
        """All parts as one; they are let go."""
        parts, self._parts = self._parts, []
        places = np.concatenate([part[0] for part in parts])
        times = np.concatenate([part[1] for part in parts])
        values = np.concatenate([part[2] for part in parts])
        return places, times, values


def _misdated(count: int) -> str:
    return f"{count:,} samples bear times before 1970 or beyond the year 5000 and were left out"


def check_size(source: str, instants: int, series: int) -> None:
    """Raises HistoryError where a frame of so many would not fit into memory."""
    if instants * series > MOST_CELLS:
        raise HistoryError(
            f"{source}: {instants:,} instants of {series:,} series don't fit into memory; "
            "ask for a shorter range, fewer signals or a longer --step"
        )


def no_instant(source: str, step_seconds: float) -> str:
    """One line where a range is shorter than a step and lies between two instants."""
    return f"{source}: no whole {step_seconds:g} s lie in that range; ask for a longer one or a shorter step"


def nothing_between(source: str, span: tuple[float, float], names: Collection[str] | None = None) -> str:
    """One line where nothing is held in the range that was asked for, of these names if any were."""
    what = f"none of {', '.join(sorted(names))}" if names else "nothing"
    return f"{source}: holds {what} in that range; it holds {shown(span[0])} to {shown(span[1])}"


def _wrong(places: Places, times: Values) -> tuple[int, int]:
    """How many samples, in order of their places, are of a time before the last of their series, and of the same."""
    backwards = twice = 0
    for first, last in _stretches(places):  # one by one, as that takes no memory
        steps = np.diff(times[first:last])
        backwards += int(np.count_nonzero(steps < 0))
        twice += int(np.count_nonzero(steps == 0))
    return backwards, twice


def _stretches(places: Places) -> list[tuple[int, int]]:
    """From where to where each series goes."""
    if not len(places):
        return []
    begins = np.concatenate(([0], np.flatnonzero(places[1:] != places[:-1]) + 1))
    return list(zip(begins.tolist(), [*begins[1:].tolist(), len(places)], strict=True))
