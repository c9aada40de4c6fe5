"""Quantiles of buckets whose bounds were added together."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.problem import Severity
from alerts.lint.promql.labels import labels_of
from alerts.lint.promql.tree import Aggregation, Call, selectors, walk
from alerts.lint.reading.query import Query


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for node, _ in walk(query.tree):
        if not isinstance(node, Call) or node.name != "histogram_quantile":
            continue
        buckets = node.arguments[1]
        if not any(each.name.endswith("_bucket") for each in selectors(buckets)):
            continue  # a native histogram has no bounds to keep
        if not labels_of(buckets).may_have("le"):
            inner = next((each for each, _ in walk(buckets) if isinstance(each, Aggregation)), node)
            yield Found(
                at(query, inner),
                "le is gone before histogram_quantile, which needs it: the result is empty",
                "keep le: sum by (le, ...) (rate(..._bucket[5m]))",
            )


CHECK = Check(
    "quantile-without-le", Severity.ERROR, "histogram_quantile over buckets that lost their le.", _find
)
