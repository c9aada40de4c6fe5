"""Means of means, and of quantiles: an idle engine counts as much as a busy one."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import is_mean, scaled
from alerts.lint.promql.tree import Aggregation, Call, Node, walk
from alerts.lint.reading.query import Query

_PUT_TOGETHER = {"avg": "averages", "sum": "adds up"}


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for node, _ in walk(query.tree):
        if not isinstance(node, Aggregation) or node.name not in _PUT_TOGETHER:
            continue
        what, fix = _what(node)
        if what:
            yield Found(at(query, node), f"this {_PUT_TOGETHER[node.name]} {what}", fix)


def _what(outer: Aggregation) -> tuple[str, str]:
    of = outer.of
    if is_mean(of):
        return (
            "means, so that a series with one request weighs as much as one with a hundred",
            "divide the sums: sum(rate(..._sum[5m])) / sum(rate(..._count[5m]))",
        )
    inner = _inner(of)
    if isinstance(inner, Call) and inner.name == "histogram_quantile":
        return (
            "quantiles, which is a quantile of nothing",
            "put the buckets together first: histogram_quantile(0.99, sum by (le) (rate(..._bucket[5m])))",
        )
    if outer.name == "avg" and isinstance(inner, Aggregation) and inner.name == "avg":
        return (
            "averages, so that a group of one counts as much as a group of ten",
            "average once, over all series",
        )
    return "", ""


def _inner(node: Node) -> Node:
    """What is put together, its constant factor aside."""
    if isinstance(node, Aggregation):
        return node
    return scaled(node)[0]


CHECK = Check("averaged-average", Severity.WARNING, "Means of means or of quantiles.", _find)
