"""What Prometheus makes of an expression's results over time: when an alert is pending, fires, and is resolved.

    episodes(times, holds, for_seconds=60, keep_firing_seconds=120)

The rules are those of Prometheus 2.42 (``rules/alerting.go``): at an evaluation with a result an alert becomes
pending; it fires at the first one that is ``for`` or more after that; one without a result ends it, unless it fires
and less than ``keep_firing_for`` has gone by since the first of them in a row. A result meanwhile lets it go on as if
nothing had been. An evaluation that failed or never was changes nothing: leave its instant out of ``times``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MILLISECONDS = 1000


class State(StrEnum):
    """Of an alert of one series, after an evaluation."""

    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"


@dataclass(frozen=True, slots=True)
class Episode:
    """One alert from its first result to its end: seconds on the clock of ``times``.

    ``fired_at`` None: it was over before it fired. ``ended_at``: the evaluation that ended it; None: it goes on.
    """

    active_at: float
    fired_at: float | None
    ended_at: float | None

    def state(self, at: float) -> State:
        """After the evaluation at ``at``, or the last one before it."""
        if at < self.active_at or (self.ended_at is not None and at >= self.ended_at):
            return State.INACTIVE
        return State.FIRING if self.fired_at is not None and at >= self.fired_at else State.PENDING


@dataclass(frozen=True, slots=True)
class Restoring:
    """What a Prometheus that was started anew takes from what it wrote before: its flags of the same names, in seconds.

    ``grace_seconds``: ``--rules.alert.for-grace-period``; an alert whose ``for`` is shorter just waits anew, and none
    that waited before fires sooner than so. ``outage_seconds``: ``--rules.alert.for-outage-tolerance``.
    """

    grace_seconds: float = 600.0
    outage_seconds: float = 3600.0


def episodes(  # noqa: PLR0913 -- what a rule says, and what befell its Prometheus
    times: ArrayLike,
    holds: ArrayLike,
    *,
    for_seconds: float = 0.0,
    keep_firing_seconds: float = 0.0,
    restarts: Sequence[float] = (),
    restoring: Restoring = Restoring(),
) -> tuple[Episode, ...]:
    """All of one series, in order. ``times``: shape (n,), evaluations in seconds, rising, exact to the millisecond.

    ``holds``: shape (n,), whether there was a result at each. ``restarts``: when Prometheus was started anew, in
    seconds; what is pending or fires then ends at the next evaluation, where another episode may begin at once. Raises
    ValueError: shapes that differ, times that don't rise, durations below 0. It takes time by how often the result
    comes and goes, not by how long the history is.
    """
    at = np.rint(np.asarray(times, dtype=np.float64) * _MILLISECONDS).astype(np.int64)
    results = np.asarray(holds, dtype=bool)
    if at.ndim != 1 or at.shape != results.shape:
        raise ValueError(f"times of shape {at.shape} and results of shape {results.shape}: give one of each")
    if np.any(np.diff(at) <= 0):
        raise ValueError("evaluations have to be in order, each later than the one before")
    if for_seconds < 0 or keep_firing_seconds < 0:
        raise ValueError("for_seconds and keep_firing_seconds can't be below 0")
    wait, keep = round(for_seconds * _MILLISECONDS), round(keep_firing_seconds * _MILLISECONDS)
    if not len(restarts):
        return tuple(_episodes(at, _stretches(results), wait, keep))
    begins = np.searchsorted(at, np.rint(np.asarray(restarts, dtype=np.float64) * _MILLISECONDS))
    inner = sorted({int(place) for place in begins} - {0, len(at)})
    return tuple(_over_restarts(at, results, (wait, keep), [0, *inner, len(at)], restoring))


def state(history: Sequence[Episode], at: float) -> State:
    """Of an alert with that history, after the evaluation at ``at``."""
    return next(
        (found for each in history if (found := each.state(at)) is not State.INACTIVE), State.INACTIVE
    )


def _over_restarts(
    at: NDArray[np.int64],
    results: NDArray[np.bool_],
    durations: tuple[int, int],
    bounds: Sequence[int],
    restoring: Restoring,
) -> Iterator[Episode]:
    """Each time that Prometheus was up by itself, with what it restores after its second evaluation."""
    wait, keep = durations
    written: _Written | None = None
    for begin, end in pairwise(bounds):
        times = at[begin:end]
        restored = _restored(times, wait, written, restoring) if begin else None
        found = list(_episodes(times, _stretches(results[begin:end]), wait, keep, restored))
        for each in found:
            over = int(at[end]) if each.ended_at is None and end < len(at) else None
            yield Episode(each.active_at, each.fired_at, _seconds(over)) if over is not None else each
        written = _last_written(times, found, restored, written)


_RESTORES_AFTER = 2
"""Evaluations after a start; from the next one on, alerts are written down."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The last sample of ALERTS_FOR_STATE: when it was written, and since when it has the alert active."""

    at: int
    active: int


def _restored(
    times: NDArray[np.int64], wait: int, written: _Written | None, restoring: Restoring
) -> int | None:
    """Since when an alert that is active after the second evaluation is taken to be; None: since it is."""
    grace = round(restoring.grace_seconds * _MILLISECONDS)
    if written is None or wait < grace or len(times) < _RESTORES_AFTER:
        return None
    # it restores when that evaluation is done, which is a moment later
    now = int(times[_RESTORES_AFTER - 1]) + 1
    if now - written.at > round(restoring.outage_seconds * _MILLISECONDS):
        return None
    # whole seconds are what is written, and what the time of a sample is taken for
    down = written.at // _MILLISECONDS * _MILLISECONDS
    left = wait - (down - written.active)
    if left <= 0:
        return written.active
    return now + grace - wait if left < grace else written.active + now - down


def _last_written(
    times: NDArray[np.int64],
    found: Sequence[Episode],
    restored: int | None,
    before: _Written | None,
) -> _Written | None:
    """After a time of being up; None: it was written that there is no alert any more."""
    if len(times) <= _RESTORES_AFTER:
        return before
    first = times[_RESTORES_AFTER] / _MILLISECONDS
    seen = [each for each in found if each.ended_at is None or each.ended_at > first]
    if not seen:
        return before
    last = seen[-1]
    if last.ended_at is not None:
        return None
    active = round(last.active_at * _MILLISECONDS)
    if restored is not None and last.active_at <= times[_RESTORES_AFTER - 1] / _MILLISECONDS:
        active = restored
    return _Written(int(times[-1]), active // _MILLISECONDS * _MILLISECONDS)


def _stretches(results: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Places from which on there are results in a row, and where there are none any more."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], results, [False]))))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def _episodes(
    at: NDArray[np.int64],
    stretches: list[tuple[int, int]],
    wait: int,
    keep: int,
    restored: int | None = None,
) -> Iterator[Episode]:
    active: int | None = None
    fired: int | None = None
    for place, (begin, end) in enumerate(stretches):
        if active is None:
            active = int(at[begin])
        if fired is None:
            first = begin + int(np.searchsorted(at[begin:end], active + wait))
            if restored is not None and begin < _RESTORES_AFTER <= min(first, end):
                later = at[_RESTORES_AFTER:end]
                first = _RESTORES_AFTER + int(np.searchsorted(later, restored + wait))
            fired = int(at[first]) if first < end else None
        following = stretches[place + 1][0] if place + 1 < len(stretches) else len(at)
        over = _end(at, (end, following), keep if fired is not None else 0)
        if over is None and following < len(at):
            continue
        yield Episode(active / _MILLISECONDS, _seconds(fired), _seconds(over))
        active = fired = None


def _end(at: NDArray[np.int64], without: tuple[int, int], keep: int) -> int | None:
    """The evaluation among those without a result that ends it; None where it outlasts all of them."""
    first, last = without
    if first == last:
        return None
    place = first + int(np.searchsorted(at[first:last], at[first] + keep))
    return int(at[place]) if place < last else None


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / _MILLISECONDS
