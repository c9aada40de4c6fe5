"""``absent()`` where several clusters are watched: silent while any of them is there."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.problem import Severity
from alerts.lint.promql.tree import Call, selectors, walk
from alerts.lint.reading.query import Query

_ABSENT = frozenset({"absent", "absent_over_time"})


def _find(query: Query, context: Context) -> Iterator[Found]:
    if not context.several_clusters or query.alert is None:
        return
    labels = set(context.settings.cluster_labels)
    for node, _ in walk(query.tree):
        if not isinstance(node, Call) or node.name not in _ABSENT:
            continue
        pinned = [
            {each.label for each in selector.matchers if each.operator == "="} >= labels
            for selector in selectors(node)
        ]
        if not all(pinned):
            by = ", ".join((*sorted(labels), "..."))
            yield Found(
                at(query, node),
                f"{node.name} is silent while any cluster has the series, and its result doesn't say which lost it",
                f"ask what was there and is gone: group by ({by}) (last_over_time(x[1h])) unless on ({by})"
                f" group by ({by}) (last_over_time(x[5m]))",
            )


CHECK = Check("absent-across-clusters", Severity.ERROR, "absent() over more than one cluster.", _find)
