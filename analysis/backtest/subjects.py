"""A frame as conditions ask for it: what is known of one engine, GPU or gateway at each instant, as rules read it.

    subjects = Subjects(frame, cluster_labels=("cluster",), lookback_seconds=60.0)
    for subject in subjects.of(alert.condition):
        alert.condition.holds(subject, thresholds)       # shape (n,)

A rule reads gauges through ``last_over_time``: a value holds for the lookback where scrapes fail or a series vanishes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from alerts.conditions import All, Condition, Either, Reading, Unless, readings
from analysis.frame import Frame, Key, Values
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.signal import PEAK_SUFFIX, Scope

_ENGINE, _GPU = Scope.ENGINE.labels[0], Scope.GPU.labels[0]
Texts = tuple[str, ...]


class Subjects:
    """All that a frame tells of. ``lookback_seconds``: for how long a value holds, a step at least."""

    def __init__(self, frame: Frame, *, cluster_labels: Sequence[str], lookback_seconds: float) -> None:
        self.frame = frame
        self.cluster_labels = tuple(cluster_labels)
        self._steps = max(1, int(round(lookback_seconds / frame.step_seconds, 6)))
        self._by_name: dict[str, list[int]] = {}
        for place, key in enumerate(frame.keys):
            self._by_name.setdefault(key.name, []).append(place)
        self._held: dict[int, Values] = {}
        self._groups: dict[tuple[Reading, Texts], Mapping[Texts, list[int]]] = {}

    @property
    def names(self) -> frozenset[str]:
        """Of all series."""
        return frozenset(self._by_name)

    def of(self, condition: Condition) -> Iterator[Subject]:
        """Each subject that a condition may be true of, in order of its labels."""
        names = (*self.cluster_labels, *condition.scope.labels)
        told = {series_name(reading) for reading in readings(condition)}
        told.add(ENGINE_GPU_INFO.full_name)
        wanted = set(condition.scope.labels)
        found = {
            tuple(key.label(name) for name in names)
            for name in told
            for key in map(self.frame.keys.__getitem__, self._by_name.get(name, ()))
            if wanted <= {label for label, _ in key.labels}
        }
        for texts in sorted(found):
            yield Subject(self, dict(zip(names, texts, strict=True)))

    def missing(self, condition: Condition) -> tuple[str, ...]:
        """Names without which a condition can't become true, and which the frame hasn't."""
        if isinstance(condition, Either):
            lacks = [self.missing(part) for part in condition.parts]
            return () if not all(lacks) else lacks[0]
        if isinstance(condition, Unless):
            return self.missing(condition.parts[0])
        if isinstance(condition, All):
            return tuple(dict.fromkeys(name for part in condition.parts for name in self.missing(part)))
        told = dict.fromkeys(series_name(reading) for reading in readings(condition))
        return tuple(name for name in told if name not in self._by_name)

    def held(self, place: int) -> Values:
        """A series as it is read at each instant: its last value within the lookback; shape (n,)."""
        known = self._held.get(place)
        if known is None:
            known = self._held[place] = hold(self.frame.values[:, place], self._steps)
        return known

    def places(self, reading: Reading, names: Texts, texts: Texts) -> Sequence[int]:
        """Series of a reading that have these labels."""
        groups = self._groups.get((reading, names))
        if groups is None:
            groups = self._groups[reading, names] = self._grouped(reading, names)
        return groups.get(texts, ())

    def owner(self, labels: Mapping[str, str], uuid: str) -> NDArray[np.bool_] | None:
        """When it is known that an engine runs on a GPU; None: never."""
        key = Key.of(ENGINE_GPU_INFO.full_name, labels)
        found = [
            self.held(place)
            for place in self._by_name.get(key.name, ())
            if all(self.frame.keys[place].label(name) == text for name, text in labels.items())
            and self.frame.keys[place].label(_GPU) == uuid
        ]
        return ~np.isnan(reduce(np.fmax, found)) if found else None

    def _grouped(self, reading: Reading, names: Texts) -> Mapping[Texts, list[int]]:
        groups: dict[Texts, list[int]] = {}
        for place in self._by_name.get(series_name(reading), ()):
            key = self.frame.keys[place]
            if all(key.label(label) == text for label, text in reading.where):
                groups.setdefault(tuple(key.label(name) for name in names), []).append(place)
        return groups


@dataclass(frozen=True, slots=True)
class Subject:
    """One of them, by its labels, as ``alerts.conditions.Values``."""

    all: Subjects
    labels: Mapping[str, str]

    def of(self, reading: Reading) -> Values | None:
        """The largest of its series at each instant, shape (n,), NaN: none; None where it has no such series."""
        wanted = tuple(
            label
            for label in (*self.all.cluster_labels, *reading.signal.scope.labels)
            if label in self.labels
        )
        joined = reading.signal.scope is Scope.GPU and _GPU not in self.labels and _ENGINE in self.labels
        found = []
        for place in self.all.places(reading, wanted, tuple(self.labels[label] for label in wanted)):
            held = self.all.held(place)
            if joined:
                here = {name: self.labels[name] for name in (*self.all.cluster_labels, _ENGINE)}
                owned = self.all.owner(here, self.all.frame.keys[place].label(_GPU))
                if owned is None:
                    continue
                held = np.where(owned, held, np.nan)
            found.append(held)
        return reduce(np.fmax, found) if found else None


def series_name(reading: Reading) -> str:
    """What is read, as it is scraped."""
    return reading.signal.full_name + (PEAK_SUFFIX if reading.peak else "")


def hold(values: Values, steps: int) -> Values:
    """Each value until the next, for ``steps`` instants at most, its own among them; shape (n,) in and out."""
    gone = np.isnan(values)
    if steps <= 1 or not gone.any():
        return values
    place = np.arange(len(values))
    last = np.maximum.accumulate(np.where(gone, -1, place))
    held = values[np.maximum(last, 0)]
    held[(last < 0) | (place - last >= steps)] = np.nan
    return held
