"""Shares whose two sides keep the label that tells them apart: each meets itself, and the result is always 1."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.problem import Severity
from alerts.lint.promql.labels import labels_of
from alerts.lint.promql.shape import RATES
from alerts.lint.promql.tree import Binary, Call, Node, Selector, walk
from alerts.lint.reading.query import Query


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for node, _ in walk(query.tree):
        if not isinstance(node, Binary) or node.operator != "/" or node.on is not None or node.ignoring:
            continue
        part, whole = _series(node.left), _series(node.right)
        if part is None or whole is None or part.name != whole.name:
            continue
        apart = [each.label for each in part.matchers if each not in whole.matchers]
        if apart and all(labels_of(node.left).may_have(label) for label in apart):
            yield Found(
                at(query, node),
                f"both sides keep {', '.join(apart)}, so that each series is divided by itself: the result is always 1",
                f"sum (...) / sum (...), without {', '.join(apart)} on either side",
            )


def _series(node: Node) -> Selector | None:
    """Of a rate that nothing put together, or as they stand."""
    if isinstance(node, Call) and node.name in RATES:
        node = node.arguments[0]
    return node if isinstance(node, Selector) and node.name else None


CHECK = Check("unmatched-ratio", Severity.ERROR, "A share whose sides aren't summed: always 1.", _find)
