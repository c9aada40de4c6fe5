"""What a metric is, as an engine exposes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

TOTAL = "_total"
PARTS = ("_bucket", "_sum", "_count")
CREATED = "_created"
"""When a counter began, in Python's client: nobody's fault, and nothing to look at."""

Release = tuple[int, ...]


class Kind(Enum):
    """Its type."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Scale(Enum):
    """What a gauge goes up to."""

    RATIO = "0 to 1"
    PERCENT = "0 to 100"
    OPEN = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """``name`` is without the engine's prefix and, of a counter, with ``_total`` where the engine writes it.

    ``first`` and ``last`` are the releases that have it; () where that isn't known, and of ``last`` where it is still
    there; ``gone`` where the release that removed it isn't known. ``use``: what to take now that it is gone.
    ``tops``: the largest bound of its buckets from a release on. ``born_late``: its series appear with the first event,
    at 1. ``off``: the value that says "switched off". ``trap``: why a rate of this gauge is nothing.
    """

    name: str
    kind: Kind
    scale: Scale = Scale.OPEN
    first: Release = ()
    last: Release = ()
    gone: bool = False
    use: str = ""
    tops: tuple[tuple[Release, float], ...] = ()
    born_late: bool = False
    off: float | None = None
    trap: str = ""

    def top(self, release: Release | None) -> float | None:
        """The largest finite bound of its buckets in a release; in the newest where it is None."""
        if not self.tops:
            return None
        known = [top for since, top in self.tops if release is None or since <= release]
        return known[-1] if known else None


@dataclass(frozen=True, slots=True)
class Exporter:
    """Who exposes metrics. ``key`` is its name in settings.

    ``prefix``: how its names begin. ``spelling``: its prefix as its own page has it. ``complete``: a name that isn't in
    ``metrics`` is none of any release ``from oldest to newest``, unless it begins with one of ``families``. ``wrong``:
    names that rules were seen to use and that never were, and what to take.
    """

    key: str
    title: str
    prefix: re.Pattern[str]
    spelling: str
    metrics: Mapping[str, Metric]
    wrong: Mapping[str, str]
    complete: bool = False
    families: tuple[str, ...] = ()
    oldest: str = ""
    newest: str = ""

    def stem(self, series: str) -> str | None:
        """A series' name without the prefix; None where it is another's."""
        stem, found = self.prefix.subn("", series, count=1)
        return stem if found else None


def release(text: str) -> Release:
    """``0.11.2`` as numbers. Raises ValueError."""
    parts = tuple(int(part) for part in text.split("."))
    if not parts or len(parts) > 4:  # noqa: PLR2004 -- no engine has more
        raise ValueError(f"{text!r} is no release: write it as 0.11.2")
    return parts


def written(number: Release) -> str:
    """A release for people."""
    return ".".join(map(str, number))


def is_later(one: Release, other: Release) -> bool:
    """Whether a release is beyond another: 0.11.2 is in 0.11, and 0.12 is not."""
    return one[: len(other)] > other


def is_earlier(one: Release, other: Release) -> bool:
    """Whether a release is before another: 0.11 has what came with 0.11.2 in it."""
    return one < other[: len(one)]


def exposed(metric: Metric) -> tuple[str, ...]:
    """The names of its series."""
    if metric.kind is Kind.HISTOGRAM:
        return tuple(metric.name + part for part in PARTS)
    return (metric.name,)
