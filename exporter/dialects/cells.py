"""Readings put together by whose they are and what they mean, and turned into the fields of a sample."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from exporter.dialects.names import Kind, Name, Table
from exporter.exposition import Series
from exporter.sample import Histogram

NOT_A_NUMBER = "not_a_number"
BELOW_ZERO = "below_0"
USAGE_ABOVE_1 = "usage_above_1"
NAMES_HALF_THERE = "names_half_there"
"""One of the groups of series that the engine always shows together is missing as a whole."""

Cells = Mapping[Name, Mapping[Any, float]]
"""Readings by name, then by what tells those of one name apart (see ``Slot``)."""
Facts = dict[str, Any]
"""Fields by their names in ``RankSample``; those that aren't known are left out."""


class Slot(NamedTuple):
    """What a series means, worked out once.

    ``owner`` is whose it is, None for the front end. ``detail`` tells the readings of one name apart: a
    bucket's bound, a reason, what an info says. ``highest`` puts readings of one detail together by their
    maximum, else by their sum.
    """

    owner: Any
    name: Name
    detail: Any = None
    highest: bool = False


def read_as(table: Table, series: Series) -> tuple[Name, Any, Mapping[str, str]] | None:
    """What one series is: its name in the table, what tells it apart from others of that name, its labels."""
    labels = dict(series.labels)
    for name in table.spellings(series.name):
        if name.only is None or labels.get(name.only[0]) == name.only[1]:
            readable, detail = detail_of(name, labels)
            return (name, detail, labels) if readable else None
    return None


def slot_of(owner: Any, name: Name, detail: Any, labels: Mapping[str, str]) -> Slot:  # noqa: ANN401 -- the dialect's
    """What ``read_as`` found, as whose it is; put together with others of its kind as that says."""
    return Slot(owner, name, detail, repeats(name, labels))


def repeats(name: Name, labels: Mapping[str, str]) -> bool:
    """Whether readings that differ in unknown labels are of the same thing, so that the highest is taken."""
    return name.kind is Kind.RATIO or (name.kind is Kind.COUNT and "pid" in labels)


def detail_of(name: Name, labels: Mapping[str, str]) -> tuple[bool, Any]:
    """Whether a series can be read as ``name``, and what tells it apart from others of that name."""
    if name.kind is Kind.INFO:
        number = number_of(labels.get(name.by or "", ""))
        return number is not None, number
    if name.part == "_bucket":
        try:
            bound = float(labels.get("le", ""))
        except ValueError:
            return False, None
        return not math.isnan(bound), bound
    return True, labels.get(name.by, "") if name.by is not None else None


def number_of(text: str) -> float | None:
    """A finite number that is not negative, or None: ``"None"``, ``"auto"``, ``"inf"`` ..."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None


def gathered(
    readings: Sequence[tuple[Any, float]], notes: set[str]
) -> defaultdict[Any, defaultdict[Name, dict[Any, float]]]:
    """Readings by owner and name. What can't be is left out, and added to ``notes``."""
    tables: defaultdict[Any, defaultdict[Name, dict[Any, float]]]
    tables = defaultdict(lambda: defaultdict(dict))
    for slot, value in readings:
        owner, name, detail, highest = slot[:4]
        if not 0.0 <= value < math.inf:
            if value != name.off:
                notes.add(BELOW_ZERO if value < 0 else NOT_A_NUMBER)
            continue
        cells = tables[owner][name]
        seen = cells.get(detail)
        if seen is None:
            cells[detail] = value
        elif highest:
            cells[detail] = max(seen, value)
        else:
            cells[detail] = seen + value
    return tables


def facts_of(table: Table, cells: Cells, notes: set[str]) -> Facts:
    """The fields that ``cells`` tell. Where a field has several spellings, the preferred one's."""
    facts: Facts = {}
    for field, spellings in table.by_field.items():
        for name in spellings:
            value = _value(table, name, cells, notes)
            if value is not None:
                facts[field] = value
                break
    return facts


def one(cells: Cells, name: Name) -> float | None:
    """The reading of a name that has a single one."""
    return cells[name].get(None) if name in cells else None


def told_by(cells: Cells, name: Name) -> tuple[tuple[str, float], ...] | None:
    """Readings by their label's value, sorted, whatever the order of the text."""
    return tuple(sorted(cells[name].items())) if name in cells else None


def share(value: float, notes: set[str]) -> float:
    """A ratio, never above 1: vLLM V0 for one adds the gauges of its processes up."""
    if value <= 1:
        return value
    notes.add(USAGE_ABOVE_1)
    return 1.0


def total_of(*counts: float | None) -> float | None:
    """The sum of those that are known; None where none is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def in_order(names: Iterable[str]) -> list[str]:
    """Names of ranks in their order: rank 10 after rank 9."""
    return sorted(names, key=lambda name: (len(name), name))


def _value(table: Table, name: Name, cells: Cells, notes: set[str]) -> object:
    if name.kind is Kind.HISTOGRAM:
        return _histogram(table, name, cells)
    if name not in cells:
        return None
    if name.kind is Kind.INFO:
        return max(cells[name], default=None)
    if name.by is not None:
        return told_by(cells, name)
    value = one(cells, name)
    return share(value, notes) if name.kind is Kind.RATIO and value is not None else value


def _histogram(table: Table, buckets: Name, cells: Cells) -> Histogram | None:
    """The bounds are the text's: users may choose them.

    Without buckets (some re-exporters leave them out) the count alone, which still has a mean.
    """
    total = one(cells, table.parts[buckets.stem, "_sum"])
    if buckets in cells:
        by_bound = cells[buckets]
        bounds, in_order = _rising(tuple(by_bound))
        counts = tuple(by_bound.values()) if in_order else tuple(by_bound[bound] for bound in bounds)
        if bounds[-1] == math.inf:
            return Histogram(bounds, counts, total)
    else:
        bounds, counts = (), ()
    count = one(cells, table.parts[buckets.stem, "_count"])
    if count is not None:
        return Histogram((*bounds, math.inf), (*counts, count), total)
    return Histogram(bounds, counts, total) if counts else None


@functools.lru_cache(maxsize=1024)
def _rising(bounds: tuple[float, ...]) -> tuple[tuple[float, ...], bool]:
    """The bounds in order, the same tuple for the same bounds, and whether they came that way."""
    rising = tuple(sorted(bounds))
    return rising, rising == bounds
