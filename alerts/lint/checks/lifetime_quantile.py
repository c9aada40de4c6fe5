"""Quantiles of everything since the process began: buckets without a rate."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.problem import Severity
from alerts.lint.promql.tree import Call, selectors, walk
from alerts.lint.reading.query import Query


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for node, _ in walk(query.tree):
        if not isinstance(node, Call) or node.name != "histogram_quantile":
            continue
        for selector in selectors(node.arguments[1]):
            if selector.name.endswith("_bucket") and selector.window is None and not selector.offset_seconds:
                yield Found(
                    at(query, selector),
                    f"{selector.name} without a rate: the quantile is that of everything since the process began",
                    f"histogram_quantile(..., sum by (le, ...) (rate({selector.name}[5m])))",
                )


CHECK = Check("lifetime-quantile", Severity.ERROR, "A quantile of buckets without a rate.", _find)
