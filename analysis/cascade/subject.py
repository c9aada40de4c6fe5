"""What a frame knows of one subject: a rank of an engine, with its GPUs and with the gateways before it.

fleet = Fleet(frame)
for engine in fleet.engines:
    for rank in fleet.ranks(engine):                 # Subject
        rank.of(Reading(KV_USAGE))                   # shape (n,), NaN where not known; None: no such series
        KV_THRASHING.condition.holds(rank, THRESHOLDS)   # shape (n,), or False
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alerts.conditions import Reading
from analysis.frame import Frame, Key, Values
from exporter.derive.inventory import ENGINE_GPU_INFO, GPU_UP
from exporter.signal import PEAK_SUFFIX, Scope, Signal
from exporter.source_signals import SOURCE_UP

Where = tuple[tuple[str, str], ...]
_ENGINE, _RANK, _UUID, _GATEWAY, _SOURCE = "engine", "rank", "uuid", "gateway", "source"


class Fleet:
    """All subjects of a frame, with its series found by name. Nothing in it changes the frame."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self._places: dict[str, list[tuple[int, Key]]] = {}
        self._of_engine: dict[tuple[str, str], list[tuple[int, Key]]] = {}
        ranks: dict[str, set[str]] = {}
        gateways: set[str] = set()
        for place, key in enumerate(frame.keys):
            self._places.setdefault(key.name, []).append((place, key))
            if engine := key.label(_ENGINE):
                self._of_engine.setdefault((key.name, engine), []).append((place, key))
                ranks.setdefault(engine, set()).update({key.label(_RANK)} - {""})
            gateways |= {key.label(_GATEWAY)} - {""}
        gpus: dict[str, set[str]] = {}
        for _, key in self.places(ENGINE_GPU_INFO.full_name):
            gpus.setdefault(key.label(_ENGINE), set()).add(key.label(_UUID))
        self.uuids = tuple(sorted({key.label(_UUID) for _, key in self.places(GPU_UP.full_name)}))
        """All GPUs that are told of, in order."""
        self._gpus = {engine: frozenset(uuids) for engine, uuids in gpus.items()}
        self._ranks = {engine: tuple(sorted(told)) for engine, told in sorted(ranks.items())}
        self.gateways = tuple(sorted(gateways))
        """Their names, in order."""

    @property
    def engines(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(self._ranks)

    @property
    def sources(self) -> tuple[str, ...]:
        """What sidecars read that is no engine, in order."""
        told = {key.label(_SOURCE) for _, key in self.places(SOURCE_UP.full_name)}
        return tuple(sorted(told - set(self.engines)))

    def ranks(self, engine: str) -> tuple[Subject, ...]:
        """Each rank of an engine by itself; the engine as it is where none is told."""
        return tuple(Subject(self, engine, rank) for rank in self._ranks[engine]) or (Subject(self, engine),)

    def each_gpu(self) -> tuple[Subject, ...]:
        """Each GPU, with the engine that runs on it; several where several share it, none where nobody tells."""
        of = {uuid: [name for name in self.engines if uuid in self.gpus(name)] or [""] for uuid in self.uuids}
        return tuple(Subject(self, name, uuid=uuid) for uuid, names in of.items() for name in names)

    def gpus(self, engine: str) -> frozenset[str]:
        """Those that the engine runs on; none where nobody tells."""
        return self._gpus.get(engine, frozenset())

    def places(self, name: str, engine: str = "") -> Sequence[tuple[int, Key]]:
        """Where the series of that name stand; of one engine where it is named."""
        return self._of_engine.get((name, engine), ()) if engine else self._places.get(name, ())


@dataclass(frozen=True, slots=True)
class Subject:
    """A rank, an engine (without ``rank``), or the whole fleet (without ``engine``); with ``uuid`` one of its GPUs."""

    fleet: Fleet
    engine: str = ""
    rank: str = ""
    uuid: str = ""

    @property
    def frame(self) -> Frame:
        """All that is known."""
        return self.fleet.frame

    @property
    def n(self) -> int:
        """How many instants there are."""
        return len(self.fleet.frame)

    def of(self, reading: Reading) -> Values | None:
        """The largest of the series that a reading picks at each instant, shape (n,). See ``alerts.conditions``."""
        columns = list(self.columns(reading.signal, reading.where, peak=reading.peak))
        return _over(np.fmax, columns)

    def total(self, signal: Signal, where: Where = ()) -> Values | None:
        """The sum over all series of a signal, shape (n,); unknown only where each of them is."""
        columns = self._distinct(signal, where)
        if not columns:
            return None
        known = ~np.isnan(columns[0])
        summed = np.nan_to_num(columns[0])
        for column in columns[1:]:
            known = known | ~np.isnan(column)
            summed = summed + np.nan_to_num(column)
        return np.where(known, summed, np.nan)

    def risen(self, signal: Signal, where: Where, seconds: float) -> Values | None:
        """What counters rose by within the trailing time, summed, shape (n,). A counter that fell began anew."""
        steps = max(1, round(seconds / self.frame.step_seconds))
        summed: Values | None = None
        for column in self._distinct(signal, where):
            count = _gained(column)
            before = np.concatenate((np.zeros(min(steps, self.n)), count[:-steps]))[: self.n]
            rose = count - before
            summed = rose if summed is None else summed + rose
        return summed

    def columns(self, signal: Signal, where: Where = (), *, peak: bool = False) -> Iterator[Values]:
        """The series of a signal that speak of this subject, each of shape (n,)."""
        for _, column in self._found(signal, where, peak=peak):
            yield column

    def _distinct(self, signal: Signal, where: Where) -> list[Values]:
        """One column for what is the same number: two sidecars that read one engine don't make two of it."""
        found: dict[tuple[str, ...], Values] = {}
        for key, column in self._found(signal, where):
            same = tuple(key.label(label) for label in signal.label_names)
            found[same] = np.fmax(found[same], column) if same in found else column
        return list(found.values())

    def _found(self, signal: Signal, where: Where, *, peak: bool = False) -> Iterator[tuple[Key, Values]]:
        mine = self._mine(signal.scope)
        engine = self.engine if _ENGINE in signal.scope.labels else ""
        for place, key in self.fleet.places(signal.full_name + (PEAK_SUFFIX if peak else ""), engine):
            if mine(key) and all(key.label(label) == text for label, text in where):
                yield key, self.frame.values[:, place]

    def _mine(self, scope: Scope) -> Callable[[Key], bool]:
        if scope is Scope.GPU and self.uuid:
            return lambda key: key.label(_UUID) == self.uuid
        if not self.engine or scope in {Scope.GATEWAY, Scope.SIDECAR}:
            return lambda _: True
        if scope is Scope.GPU:
            gpus = self.fleet.gpus(self.engine)
            return lambda key: key.label(_UUID) in gpus
        if scope is Scope.SOURCE:
            return lambda key: key.label(_SOURCE) == self.engine
        if scope is Scope.RANK and self.rank:
            return lambda key: key.label(_ENGINE) == self.engine and key.label(_RANK) == self.rank
        return lambda key: key.label(_ENGINE) == self.engine


def _over(largest: np.ufunc, columns: Sequence[Values]) -> Values | None:
    if not columns:
        return None
    found = columns[0]
    for column in columns[1:]:
        found = largest(found, column)
    return found


def _gained(column: Values) -> Values:
    """What a counter has risen by since its first value, shape (n,): through gaps, and anew where it fell.

    A counter that comes up amid the frame counts from 0: engines show many of them only after a first event.
    """
    known = np.flatnonzero(~np.isnan(column))
    gained = np.zeros(len(column))
    if len(known):
        values = column[known]
        first = 0.0 if known[0] > 0 else values[0]
        steps = np.diff(values, prepend=first)
        gained[known] = np.where(steps < 0, values, steps)
    return np.cumsum(gained)
