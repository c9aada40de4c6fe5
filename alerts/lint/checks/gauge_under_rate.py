"""Rates of gauges: a fall looks like a restart, and what comes out is nothing that there is."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.facts.lookup import known
from alerts.lint.facts.metric import Kind
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import RATES
from alerts.lint.promql.tree import Call, Selector, walk
from alerts.lint.reading.query import Query


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for node, _ in walk(query.tree):
        if not isinstance(node, Call) or node.name not in RATES:
            continue
        selector = node.arguments[0]
        found = known(selector.name) if isinstance(selector, Selector) else None
        if found is not None and isinstance(selector, Selector) and found.metric.kind is Kind.GAUGE:
            yield Found(
                at(query, node),
                f"{selector.name} is a gauge: {node.name} takes each fall of it for a restart from 0",
                found.metric.trap or "take it as it is, or delta() and deriv(), which know falls",
            )


CHECK = Check("gauge-under-rate", Severity.ERROR, "A rate of a gauge.", _find)
