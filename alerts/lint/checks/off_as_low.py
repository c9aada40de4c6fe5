"""A gauge that is -1 where the thing is switched off, below a threshold."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.facts.lookup import known
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import bare, compared
from alerts.lint.promql.tree import Selector, walk
from alerts.lint.reading.query import Query


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for node, value, operator, limit in compared(query.tree):
        inner = bare(value)
        found = known(inner.name) if isinstance(inner, Selector) else None
        off = found.metric.off if found is not None else None
        if not isinstance(inner, Selector) or off is None or operator not in ("<", "<=") or limit <= off:
            continue
        if not _is_guarded(query, inner.name):
            yield Found(
                at(query, node),
                f"{inner.name} is {off:g} where it is switched off: this fires there for ever",
                f"{inner.name} >= 0 and {inner.name} {operator} {limit:g}",
            )


def _is_guarded(query: Query, name: str) -> bool:
    """Whether the same series is held against 0 somewhere in the expression."""
    return any(
        comparison.operator in (">", ">=")
        and name in {each.name for each, _ in walk(comparison.value) if isinstance(each, Selector)}
        for comparison in compared(query.tree)
    )


CHECK = Check(
    "off-as-low", Severity.ERROR, "A gauge below a threshold that is -1 where it is switched off.", _find
)
