"""How a dialect writes its engine's names down: a table of what each series means."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

TOTAL = "_total"
PROCESS_START_TIME = "process_start_time_seconds"
"""Of Python's client; single process only: absent with several API servers."""


class Kind(enum.Enum):
    """How readings of one field that differ only in labels we don't know are put together."""

    COUNTER = "sum"
    COUNT = "sum, but the highest over pid: API servers repeat one gauge"
    RATIO = "highest, and never above 1"
    HISTOGRAM = "sum of each bucket"
    INFO = "the label that holds the number"


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """One spelling of one field.

    ``field`` is ``RankSample``'s. ``only`` holds a label and the value it must have; ``by`` is the
    label a labelled field is told by, or the one that holds an INFO's number. ``off`` is a value
    that means "switched off". ``part`` is the suffix of a histogram's series.
    """

    field: str
    kind: Kind
    stem: str
    only: tuple[str, str] | None = None
    by: str | None = None
    off: float | None = None
    part: str = ""


def names(
    field: str,
    kind: Kind,
    *stems: str,
    only: tuple[str, str] | None = None,
    by: str | None = None,
    off: float | None = None,
) -> Iterator[Name]:
    """The spellings of one field, the preferred first."""
    for stem in stems:
        yield Name(field, kind, stem, only, by, off)


def histogram(field: str, *stems: str) -> Iterator[Name]:
    """The spellings of one histogram, each in its three parts."""
    for stem in stems:
        for part in ("_bucket", "_sum", "_count"):
            yield Name(field, Kind.HISTOGRAM, stem, part=part)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """An engine's names by their stems: without prefix and, for counters, without ``_total``.

    ``by_field``: a field's spellings, the preferred first; of a histogram its buckets. ``parts``: the
    sum and the count of a histogram by stem and suffix.
    """

    prefix: re.Pattern[str]
    names: tuple[Name, ...]
    by_field: Mapping[str, tuple[Name, ...]]
    parts: Mapping[tuple[str, str], Name]
    by_stem: Mapping[str, tuple[Name, ...]]

    @classmethod
    def of(cls, prefix: str, fields: Iterable[Name], others: Iterable[Name] = ()) -> Table:
        """The table of names that a regular expression ``prefix`` begins; ``others`` fill no field by themselves."""
        listed = tuple(fields)
        return cls(
            re.compile(prefix),
            listed,
            _grouped((name.field, name) for name in listed if name.part in ("", "_bucket")),
            {(name.stem, name.part): name for name in listed if name.part in ("_sum", "_count")},
            _grouped((name.stem + name.part, name) for name in (*listed, *others)),
        )

    def spellings(self, series_name: str) -> tuple[Name, ...]:
        """What a series of this name may mean; empty for names that are not the engine's or mean nothing to us.

        ``_total`` is taken off where it is needed: consumers and front ends add and drop it, Ray may add a
        second one.
        """
        stem, prefixes = self.prefix.subn("", series_name, count=1)
        if not prefixes:
            return ()
        found = self.by_stem.get(stem)
        while found is None and stem.endswith(TOTAL):
            stem = stem.removesuffix(TOTAL)
            found = self.by_stem.get(stem)
        return found or ()


def _grouped(pairs: Iterable[tuple[str, Name]]) -> dict[str, tuple[Name, ...]]:
    groups: dict[str, tuple[Name, ...]] = {}
    for key, name in pairs:
        groups[key] = (*groups.get(key, ()), name)
    return groups
