"""What was unusual in a series, and when: flags for people, and scores of each instant for benchmarks.

    findings = of_frame(history.frame)
    for flag in findings.flags:
        print(flag.words)       # kv_usage_ratio of engine-0 rose to 0.99; 0.42 to 0.58 was usual; 14 spreads above; ...

A flag is an interval outside what was usual. It ends where the series returns to that: a return is no flag of its own.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from analysis.frame import Frame, Key, Values
from analysis.hour_of_week import LEAST_WEEKS, SURE_WEEKS, expected, weeks
from analysis.judged import Judged, judged, owner_of, restarts
from analysis.usual import Stretch, outside, steady
from exporter.signal import PREFIX, Scope

_NOT_SAID = frozenset({"model_name"})
_WHOSE = frozenset(label for scope in Scope for label in scope.labels) - _NOT_SAID
_DAY, _TIME = "{0:%Y-%m-%d }", "{0:%H:%M:%S}"
COUNTLESS = 1000.0
_LEAST_INSTANTS = 30
"""What is usual isn't known from fewer."""


class Kind(enum.StrEnum):
    """What a series did."""

    SPIKE = "spike"
    """It rose, and came back."""
    DROP = "drop"
    """It fell, and came back."""
    LEVEL_UP = "level-up"
    """It rose, and was still there at the end of what is known."""
    LEVEL_DOWN = "level-down"
    """It fell, and was still there at the end of what is known."""

    @property
    def upwards(self) -> bool:
        """Whether it rose."""
        return self in {Kind.SPIKE, Kind.LEVEL_UP}


class Baseline(enum.StrEnum):
    """What a value was held against."""

    BEFORE = "before"
    """What the series was worth before."""
    HOUR_OF_WEEK = "hour-of-week"
    """What it was worth at this hour of other weeks."""


@dataclass(frozen=True, slots=True)
class Flag:
    """An interval in which a series was outside what was usual.

    ``start``: the first instant outside; ``end``: the first that is usual again, or None where it never was within
    what is known; ``last``: the last instant outside. Seconds since the epoch. ``value``: the one furthest outside, at
    ``worst_at``, in the series' unit; of a counter its rate per second. ``low`` and ``high``: what was usual.
    ``score``: how far outside of that ``value`` was, in spreads of what is usual.
    """

    key: Key
    kind: Kind
    start: float
    last: float
    end: float | None
    worst_at: float
    value: float
    low: float
    high: float
    score: float
    baseline: Baseline
    is_rate: bool = False

    @property
    def words(self) -> str:
        """All of it in one line, times in UTC."""
        name = self.key.name.removeprefix(PREFIX)
        unit = " per second" if self.is_rate else ""
        whose = " ".join(
            f"rank {text}" if label == "rank" else text for label, text in self.key.labels if label in _WHOSE
        )
        which = ", ".join(text for label, text in self.key.labels if label not in _WHOSE | _NOT_SAID)
        verb, side = ("rose", "above") if self.kind.upwards else ("fell", "below")
        far = f"{self.score:.0f}" if self.score < COUNTLESS else f"over {COUNTLESS:,.0f}"
        days = self.end is not None and _DAY.format(_utc(self.start)) != _DAY.format(_utc(self.end))
        clock = (_DAY + _TIME if days else _TIME).format
        ended = f"to {clock(_utc(self.end))}" if self.end is not None else "and was still there at the end"
        return (
            f"{name}{f' ({which})' if which else ''}{unit}{f' of {whose}' if whose else ''} {verb} to {self.value:.3g};"
            f" {self.low:.3g} to {self.high:.3g} was usual; {far} spreads {side};"
            f" {clock(_utc(self.start))} {ended}"
        )


@dataclass(frozen=True, slots=True)
class Looked:
    """One series that was looked at. ``left_out``: why it can't be judged, empty where it was."""

    key: Key
    baseline: Baseline
    flags: tuple[Flag, ...] = ()
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """All series of a frame, in its order."""

    series: tuple[Looked, ...]

    @property
    def flags(self) -> tuple[Flag, ...]:
        """Of all series, in order of time."""
        found = (flag for each in self.series for flag in each.flags)
        return tuple(sorted(found, key=lambda flag: (flag.start, flag.key)))


def of_frame(frame: Frame) -> Findings:
    """Look at each series by itself, but not around restarts of the engine that it is of."""
    around = restarts(frame)
    looked = []
    for key, values in frame.columns():
        looked.append(look(key, values, frame.times, frame.step_seconds, hidden=around.get(owner_of(key))))
    return Findings(tuple(looked))


def flags(values: Values, times: Values, step_seconds: float, key: Key) -> tuple[Flag, ...]:
    """Of one series: ``values`` and ``times`` of shape (n,), ``step_seconds`` apart, NaN where not known."""
    return look(key, values, times, step_seconds).flags


def look(
    key: Key,
    values: Values,
    times: Values,
    step_seconds: float,
    *,
    hidden: NDArray[np.bool_] | None = None,
) -> Looked:
    """The same, with what the series was held against and why it may not have been.

    ``hidden``: shape (n,), instants that aren't judged.
    """
    what = judged(key, values, step_seconds)
    if what is None:
        return Looked(key, Baseline.BEFORE, left_out="it is text, a time or a forecast")
    judgeable = np.isfinite(what.values) if hidden is None else np.isfinite(what.values) & ~hidden
    seen = np.where(judgeable, what.values, np.nan)
    places = np.flatnonzero(judgeable)
    if (known := len(places)) < _LEAST_INSTANTS:
        return Looked(
            key, Baseline.BEFORE, left_out=f"{known} instants are known, and {_LEAST_INSTANTS} are needed"
        )
    if np.nanmin(seen) == np.nanmax(seen):
        return Looked(key, Baseline.BEFORE)
    seen = steady(seen, step_seconds)
    series = _Seen(key, seen, times, what, hidden)
    even = what.noise.evened(seen)
    found = _events(what, outside(even, step_seconds, what.noise))
    there = weeks(times[places[0] : places[-1] + 1], step_seconds)
    if there < LEAST_WEEKS:
        return Looked(key, Baseline.BEFORE, tuple(series.flag(each, Baseline.BEFORE) for each in found))
    usual = expected(even, times)
    others = _events(what, outside(even - usual, step_seconds, what.noise.around(usual)))
    if there < SURE_WEEKS:
        # with few weeks an incident of one makes the same hour of another look odd: that one isn't odd by itself
        others = tuple(each for each in others if any(_meet(each, one) for one in found))
    moved = (each.moved(float(usual[each.worst])) for each in others)
    return Looked(
        key, Baseline.HOUR_OF_WEEK, tuple(series.flag(each, Baseline.HOUR_OF_WEEK) for each in moved)
    )


def _events(what: Judged, found: tuple[Stretch, ...]) -> tuple[Stretch, ...]:
    return tuple(each for each in found if (what.rises if each.upwards else what.falls))


def _meet(one: Stretch, other: Stretch) -> bool:
    return one.first <= other.last and other.first <= one.last and one.upwards == other.upwards


@dataclass(frozen=True, slots=True)
class _Seen:
    """A series as it was judged."""

    key: Key
    values: Values
    times: Values
    what: Judged
    hidden: NDArray[np.bool_] | None

    def _first(self, stretch: Stretch) -> int:
        """What is outside as judging begins again was so since when, within what wasn't judged before it."""
        first = stretch.first
        if self.hidden is not None:
            known = self.what.noise.evened(self.what.values)
            while first and self.hidden[first - 1] and stretch.holds(float(known[first - 1])):
                first -= 1
        return first

    def flag(self, stretch: Stretch, baseline: Baseline) -> Flag:
        value = float(self.values[stretch.worst])
        noise = self.what.noise
        if stretch.back is not None:
            kind = Kind.SPIKE if stretch.upwards else Kind.DROP
        else:
            kind = Kind.LEVEL_UP if stretch.upwards else Kind.LEVEL_DOWN
        return Flag(
            self.key,
            kind,
            float(self.times[self._first(stretch)]),
            float(self.times[stretch.last]),
            None if stretch.back is None else float(self.times[stretch.back]),
            float(self.times[stretch.worst]),
            value,
            noise.told(stretch.low),
            noise.told(stretch.high),
            abs(stretch.score(float(noise.evened(np.array([value]))[0]))),
            baseline,
            self.what.is_rate,
        )


def _utc(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
