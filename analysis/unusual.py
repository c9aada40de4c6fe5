"""What was unusual in a source, for people: by place, in the order in which it began.

    look = looked_at("recording.db")
    for place in look.places:
        place.name, place.since, place.first, place.flags

A place is an engine with its GPUs, a gateway, or what else a series is of. A return to what is usual is the end of what
began before it, and never listed by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.anomaly import Flag, of_frame
from analysis.frame import CLUSTER, Frame, Key, Values
from analysis.history.history import History
from analysis.history.reading import read
from analysis.judged import judged
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.signal import PREFIX, Scope

MOVED_FIRST = 4
"""Signals of a place that are named as those that moved first."""
_OWNERS = (*Scope.ENGINE.labels, *Scope.GATEWAY.labels, *Scope.SOURCE.labels)
_GPU = Scope.GPU.labels[0]
_TELLS_NOTHING = frozenset({CLUSTER, "model_name", "rank"})
"""Labels of which places have one value only, or most do."""


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A flagged series as it was judged: a counter as its rate. ``values``: shape (n,) on the look's ``times``."""

    key: Key
    values: Values


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """What was unusual at one place: its flags and the series they are of, in the order in which it began."""

    name: str
    flags: tuple[Flag, ...]
    series: tuple[Traced, ...]

    @property
    def since(self) -> float:
        """When the first of them began."""
        return self.flags[0].start

    @property
    def until(self) -> float | None:
        """When all of it was usual again; None: not within what is known."""
        ends = [flag.end for flag in self.flags]
        return None if None in ends else max(end for end in ends if end is not None)

    @property
    def first(self) -> tuple[str, ...]:
        """The signals that moved first, each once."""
        return tuple(dict.fromkeys(signal_name(flag.key) for flag in self.flags))[:MOVED_FIRST]


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One source and what was unusual in it. ``judged`` of ``series``: the others are text, or hardly known.

    ``derived``: no sidecar was there, and so many signals are derived from the engines' own series.
    """

    source: str
    times: Values
    step_seconds: float
    series: int
    judged: int
    derived: int
    notes: tuple[str, ...]
    places: tuple[Place, ...]

    @property
    def flags(self) -> int:
        """How many stretches of series were unusual."""
        return sum(len(place.flags) for place in self.places)


def looked_at(
    source: str,
    start: float | None = None,
    end: float | None = None,
    step_seconds: float | None = None,
    matchers: Sequence[str] = (),
) -> Look:
    """Read a source and judge each of its series. Raises HistoryError."""
    return look_at(read(source, start, end, step_seconds=step_seconds, matchers=matchers))


def look_at(history: History) -> Look:
    """Judge each series of a history."""
    frame = history.frame
    findings = of_frame(frame)
    return Look(
        history.source,
        frame.times,
        frame.step_seconds,
        len(frame.keys),
        sum(not each.left_out for each in findings.series),
        len(history.derived),
        history.notes,
        _places(frame, findings.flags),
    )


def signal_name(key: Key) -> str:
    """A signal without our prefix, with what tells it from others of the same place."""
    inside = [
        f"{label}={text}" for label, text in key.labels if label not in {*_OWNERS, _GPU, *_TELLS_NOTHING}
    ]
    return " ".join([key.name.removeprefix(PREFIX), *inside])


def place_of(key: Key, engines_of_gpu: dict[str, str]) -> str:
    """Whose a series is, in words: an engine's name, which a GPU goes by too where it is known to be one's."""
    uuid = key.label(_GPU)
    if uuid and not key.label(_OWNERS[0]):
        return engines_of_gpu.get(uuid, f"GPU {uuid}")
    owner = next((label for label in _OWNERS if key.label(label)), None)
    if owner is None:
        return "the sidecar itself" if key.name.startswith(PREFIX) else "all of it"
    return key.label(owner) if owner == _OWNERS[0] else f"{owner} {key.label(owner)}"


def _places(frame: Frame, flags: Iterable[Flag]) -> tuple[Place, ...]:
    """By the first flag of each."""
    engines_of_gpu = {
        key.label(_GPU): key.label(_OWNERS[0]) for key in frame.keys if key.name == ENGINE_GPU_INFO.full_name
    }
    several = len({key.label(CLUSTER) for key in frame.keys}) > 1
    groups: dict[str, list[Flag]] = {}
    for flag in flags:
        name, cluster = place_of(flag.key, engines_of_gpu), flag.key.label(CLUSTER)
        groups.setdefault(f"{name} in {cluster}" if several and cluster else name, []).append(flag)
    return tuple(
        Place(name, tuple(own), tuple(_traced(frame, key) for key in dict.fromkeys(flag.key for flag in own)))
        for name, own in groups.items()
    )


def _traced(frame: Frame, key: Key) -> Traced:
    what = judged(key, frame.column(key), frame.step_seconds)
    values = frame.column(key) if what is None else what.values
    return Traced(key, np.array(values))
