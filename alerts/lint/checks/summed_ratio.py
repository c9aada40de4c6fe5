"""Ratios that are added up: four engines at 0.9 make 3.6."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import share
from alerts.lint.promql.tree import Aggregation, Binary, Node, Selector, walk
from alerts.lint.reading.query import Query

_ONE_ENGINE = ({"instance", "engine"}, {"pod", "engine"}, {"engine", "rank"})


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for node, above in walk(query.tree):
        if not isinstance(node, Aggregation) or node.name != "sum" or _is_mean(above):
            continue
        found = share(node.of)
        single = not node.drops and any(each <= set(node.labels) for each in _ONE_ENGINE)
        if found is None or single:
            continue
        name = found.of.name if isinstance(found.of, Selector) else "a ratio"
        yield Found(
            at(query, node),
            f"{name} is added up: two engines at 0.4 make 0.8, and four at 0.9 make 3.6",
            "take max or avg; of a division, divide the sums",
        )


def _is_mean(above: tuple[Node, ...]) -> bool:
    """Whether a count stands below the sum."""
    for node in above:
        below = node.right if isinstance(node, Binary) and node.operator == "/" else None
        if isinstance(below, Aggregation) and below.name == "count":
            return True
    return False


CHECK = Check("summed-ratio", Severity.ERROR, "Ratios that are added up.", _find)
