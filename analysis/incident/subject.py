"""Whose series: those of the whole fleet, or of one engine with its GPUs; and how several become one."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from analysis.frame import Frame, Key, Values
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.signal import Scope, Signal

FLEET = ""
"""The name of the subject that is everybody."""


class Fold(enum.Enum):
    """How the series of a subject become one; what is not known of all of them is not known."""

    SUM = "sum"
    MAX = "largest"
    MIN = "smallest"


@dataclass(frozen=True, slots=True)
class Subject:
    """A fleet, or one engine of it, in a frame.

    ``engine``: its name, or FLEET. ``uuids``: its GPUs; of the fleet nobody asks.
    """

    frame: Frame
    engine: str = FLEET
    uuids: frozenset[str] = frozenset()
    places: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """As reports say it."""
        return self.engine or "the fleet"

    def series(self, signal: Signal, **where: str) -> list[tuple[Key, Values]]:
        """All of a signal that are the subject's, with the labels of ``where``; each of shape (n,)."""
        keys = self.frame.keys
        return [
            (keys[place], self.frame.values[:, place])
            for place in self.places.get(signal.full_name, ())
            if self._own(keys[place], signal.scope)
            and all(keys[place].label(label) == text for label, text in where.items())
        ]

    def folded(self, signal: Signal, fold: Fold, **where: str) -> Values:
        """One series of all of a signal, shape (n,); NaN where nothing is known."""
        return folded([values for _, values in self.series(signal, **where)], fold, len(self.frame))

    def _own(self, key: Key, scope: Scope) -> bool:
        if not self.engine:
            return True
        if scope is Scope.GPU:
            return key.label("uuid") in self.uuids
        if scope is Scope.SOURCE:
            return key.label("source") == self.engine
        return key.label("engine") == self.engine


def fleet(frame: Frame) -> Subject:
    """Everybody in a frame."""
    places: dict[str, list[int]] = {}
    for place, key in enumerate(frame.keys):
        places.setdefault(key.name, []).append(place)
    return Subject(frame, places={name: tuple(each) for name, each in places.items()})


def engines(everybody: Subject) -> tuple[Subject, ...]:
    """Each engine of a fleet, in order of their names."""
    frame = everybody.frame
    owned: dict[str, set[str]] = {}
    for key, _ in everybody.series(ENGINE_GPU_INFO):
        owned.setdefault(key.label("engine"), set()).add(key.label("uuid"))
    return tuple(
        Subject(frame, name, frozenset(owned.get(name, ())), everybody.places)
        for name in frame.label_values("engine")
    )


def folded(columns: Sequence[Values], fold: Fold, length: int) -> Values:
    """Columns of shape (length,) as one; NaN where none is known, a sum where some are."""
    if not columns:
        return np.full(length, np.nan)
    if fold is Fold.MAX:
        return np.asarray(np.fmax.reduce(columns), dtype=np.float64)
    if fold is Fold.MIN:
        return np.asarray(np.fmin.reduce(columns), dtype=np.float64)
    total = np.zeros(length)
    known = np.zeros(length, dtype=bool)
    for values in columns:
        there = ~np.isnan(values)
        total[there] += values[there]
        known |= there
    return np.where(known, total, np.nan)


def rises(values: Values) -> Values:
    """How much a counter rose up to each instant since it was last known, shape (n,).

    NaN where it is not known; 0 at the first value and where it fell: a counter that begins anew has lost its rise.
    """
    result = np.full(len(values), np.nan)
    known = np.flatnonzero(~np.isnan(values))
    if len(known):
        result[known] = np.maximum(np.diff(values[known], prepend=values[known[0]]), 0.0)
    return result


def trailing_sum(values: Values, places: int) -> Values:
    """Of the last ``places`` instants at each, what isn't known taken as nothing; NaN where none of them is known."""
    known = ~np.isnan(values)
    sums = np.concatenate(([0.0], np.cumsum(np.where(known, values, 0.0))))
    counts = np.concatenate(([0], np.cumsum(known)))
    last = np.arange(1, len(values) + 1)
    first = np.maximum(last - places, 0)
    return np.where(counts[last] > counts[first], sums[last] - sums[first], np.nan)
