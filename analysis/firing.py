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


def episodes(
    times: ArrayLike, holds: ArrayLike, *, for_seconds: float = 0.0, keep_firing_seconds: float = 0.0
) -> tuple[Episode, ...]:
    """All of one series, in order. ``times``: shape (n,), evaluations in seconds, rising, exact to the millisecond.

    ``holds``: shape (n,), whether there was a result at each. Raises ValueError: shapes that differ, times that don't
    rise, durations below 0. It takes time by how often the result comes and goes, not by how long the history is.
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
    return tuple(_episodes(at, _stretches(results), wait, keep))


def state(history: Sequence[Episode], at: float) -> State:
    """Of an alert with that history, after the evaluation at ``at``."""
    return next(
        (found for each in history if (found := each.state(at)) is not State.INACTIVE), State.INACTIVE
    )


def _stretches(results: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Places from which on there are results in a row, and where there are none any more."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], results, [False]))))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def _episodes(
    at: NDArray[np.int64], stretches: list[tuple[int, int]], wait: int, keep: int
) -> Iterator[Episode]:
    active: int | None = None
    fired: int | None = None
    for place, (begin, end) in enumerate(stretches):
        if active is None:
            active = int(at[begin])
        if fired is None:
            first = begin + int(np.searchsorted(at[begin:end], active + wait))
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
