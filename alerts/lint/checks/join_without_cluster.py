"""Joins that put one cluster's series beside another's."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.problem import Severity
from alerts.lint.promql.labels import is_scalar
from alerts.lint.promql.tree import Binary, Selector, selectors, walk
from alerts.lint.reading.query import Query


def _find(query: Query, context: Context) -> Iterator[Found]:
    if not context.several_clusters:
        return
    for node, _ in walk(query.tree):
        if not isinstance(node, Binary) or is_scalar(node.left) or is_scalar(node.right):
            continue
        labels = context.settings.cluster_labels
        if node.on is not None:
            missing = [label for label in labels if label not in node.on]
        else:
            missing = [label for label in labels if label in (node.ignoring or ())]
        if missing and not _is_of_one(node, missing):
            yield Found(
                at(query, node),
                f"this join leaves {', '.join(missing)} out: what is wrong in one cluster meets what is right in"
                " another, without an error",
                f"on ({', '.join((*missing, *(node.on or ('...',))))})",
            )


def _is_of_one(node: Binary, labels: list[str]) -> bool:
    """Whether all series that are joined are picked from one cluster."""
    return all(_is_pinned(each, labels) for each in selectors(node))


def _is_pinned(selector: Selector, labels: list[str]) -> bool:
    pinned = {matcher.label for matcher in selector.matchers if matcher.operator == "="}
    return pinned.issuperset(labels)


CHECK = Check("join-without-cluster", Severity.ERROR, "A join that leaves the cluster's label out.", _find)
