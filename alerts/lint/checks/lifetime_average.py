"""Means over the whole life of a process: a sum over a count, neither of them as a rate."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import bare, is_counter
from alerts.lint.promql.tree import Aggregation, Binary, Node, Selector, walk
from alerts.lint.reading.query import Query


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for node, _ in walk(query.tree):
        if not isinstance(node, Binary) or node.operator != "/":
            continue
        above, below = _raw(node.left), _raw(node.right)
        if above is None or below is None:
            continue
        stem = above.name.removesuffix("_sum")
        if (above.name != stem and below.name == f"{stem}_count") or (
            is_counter(above) and is_counter(below)
        ):
            yield Found(
                at(query, node),
                f"{above.name} over {below.name} since they began: after a day an hour of trouble hardly moves it",
                f"divide what they rose by: sum(rate({above.name}[5m])) / sum(rate({below.name}[5m]))",
            )


def _raw(node: Node) -> Selector | None:
    """Series as they stand, perhaps added up."""
    while True:
        node = bare(node)
        if isinstance(node, Aggregation) and node.name == "sum":
            node = node.of
        elif isinstance(node, Selector) and node.window is None and not node.offset_seconds:
            return node
        else:
            return None


CHECK = Check(
    "lifetime-average", Severity.ERROR, "A sum over a count, or two counters, without rates.", _find
)
