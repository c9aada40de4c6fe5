"""Quantiles compared with more than the largest bucket holds: they can't get there."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.facts.lookup import known
from alerts.lint.facts.metric import written
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import compared, scaled
from alerts.lint.promql.tree import Call, selectors
from alerts.lint.reading.query import Query


def _find(query: Query, context: Context) -> Iterator[Found]:
    for node, value, operator, limit in compared(query.tree):
        inner, factor = scaled(value)
        is_quantile = isinstance(inner, Call) and inner.name == "histogram_quantile"
        if not is_quantile or operator not in (">", ">=", "=="):
            continue
        for selector in selectors(inner):
            found = known(selector.name)
            if found is None:
                continue
            release = context.settings.in_use.get(found.exporter.key)
            top = found.metric.top(release)
            if top is None or limit < top * factor or (limit == top * factor and operator != ">"):
                continue
            where = f"{found.exporter.title} {written(release)}" if release else found.exporter.title
            yield Found(
                at(query, node),
                f"the largest bucket of {found.metric.name} in {where} ends at {top:g}: a quantile is never above"
                f" {top * factor:g}, and this compares with {limit:g}",
                f"compare with less than {top * factor:g}, or count what is beyond the largest bucket",
            )


CHECK = Check(
    "threshold-above-buckets", Severity.ERROR, "A quantile compared with more than its buckets reach.", _find
)
