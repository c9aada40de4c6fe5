"""The Prometheus text format as prometheus_client writes it, from numbers that others keep.

Single process: each counter, histogram and summary has a ``_created`` gauge after it, and a histogram's sum comes last.
Several processes (V0's server, several API servers): no ``_created``, and the sum before the buckets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from prometheus_client.utils import floatToGoString

from drill.expose.buckets import Buckets

Labels = tuple[tuple[str, str], ...]
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary without quantiles."""

    count: float
    total: float


class Told(NamedTuple):
    """One child of a family: its value, its labels, and when it came to be (None: not told)."""

    value: float | Buckets | Summary
    labels: Labels = ()
    created: float | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """What the HELP and TYPE lines say. A counter's name ends in ``_total``."""

    name: str
    kind: str
    help: str


def number(value: float) -> str:
    """As prometheus_client writes it."""
    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return text


class Page:
    """A page under construction."""

    def __init__(self, *, several_processes: bool) -> None:
        self._several = several_processes
        self._lines: list[str] = []

    def add(self, family: Family, told: Iterable[Told]) -> None:
        """One family: its lines, and the gauges that say when each of its children came to be."""
        children = tuple(told)
        lines = self._lines
        lines.append(_head(family.name, family.kind, family.help))
        for value, labels, _ in children:
            if isinstance(value, Buckets):
                self._add_buckets(family.name, labels, value)
            elif isinstance(value, Summary):
                lines.append(_series(family.name + "_count", labels) + number(value.count))
                lines.append(_series(family.name + "_sum", labels) + number(value.total))
            else:
                lines.append(_series(family.name, labels) + number(value))
        if family.kind != "gauge" and not self._several:
            self._add_created(family, children)

    def _add_created(self, family: Family, children: tuple[Told, ...]) -> None:
        name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
        name += "_created"
        told = [_series(name, labels) + number(created) for _, labels, created in children if created]
        if told:
            self._lines += [_head(name, "gauge", family.help), *told]

    def _add_buckets(self, name: str, labels: Labels, value: Buckets) -> None:
        names = _histogram(name, labels, value.bounds)
        total = names[-1] + number(value.total)
        lines = self._lines
        if self._several:
            lines.append(total)
        seen = 0
        for place, count in enumerate(value.counts):
            seen += count
            lines.append(f"{names[place]}{number(seen)}")
        lines.append(names[-2] + number(value.count))
        if not self._several:
            lines.append(total)

    def text(self) -> str:
        """All of it."""
        return "\n".join(self._lines) + "\n"


@lru_cache(maxsize=1024)
def _head(name: str, kind: str, text: str) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {text}\n# TYPE {name} {kind}"


@lru_cache(maxsize=16384)
def _series(name: str, labels: Labels) -> str:
    """What stands before the value. Labels come in the order of their names."""
    inside = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in sorted(labels))
    return f"{name}{{{inside}}} " if inside else f"{name} "


@lru_cache(maxsize=4096)
def _histogram(name: str, labels: Labels, bounds: tuple[float, ...]) -> tuple[str, ...]:
    """What stands before the counts of the buckets, before their count and before their sum."""
    buckets = [_series(name + "_bucket", (*labels, ("le", number(bound)))) for bound in bounds]
    return (*buckets, _series(name + "_count", labels), _series(name + "_sum", labels))
