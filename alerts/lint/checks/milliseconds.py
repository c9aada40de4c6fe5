"""Seconds compared with a number that only milliseconds reach."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.facts.lookup import known
from alerts.lint.facts.metric import Kind
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import compared, is_mean, scaled
from alerts.lint.promql.tree import Call, Node, selectors
from alerts.lint.reading.query import Query

_NOBODY_WAITS_SECONDS = 500.0
_MILLISECONDS = 1000.0


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for node, value, operator, limit in compared(query.tree):
        inner, factor = scaled(value)
        seconds = limit / factor
        if operator not in (">", ">=") or seconds < _NOBODY_WAITS_SECONDS or not _is_latency(inner):
            continue
        names = [found.metric for each in selectors(inner) if (found := known(each.name))]
        metric = next(
            (each for each in names if each.kind is Kind.HISTOGRAM and each.name.endswith("_seconds")), None
        )
        top = metric.top(None) if metric is not None else None
        if metric is not None and (top is None or seconds <= top):
            yield Found(
                at(query, node),
                f"{metric.name} is in seconds: {seconds:g} of them are {seconds / 60:.0f} minutes",
                f"if milliseconds were meant, compare with {limit / _MILLISECONDS:g}",
            )


def _is_latency(node: Node) -> bool:
    return (isinstance(node, Call) and node.name == "histogram_quantile") or is_mean(node)


CHECK = Check("milliseconds", Severity.ERROR, "A latency in seconds compared with milliseconds.", _find)
