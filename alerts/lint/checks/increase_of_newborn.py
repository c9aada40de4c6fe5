"""The first event of a counter that appears with it: ``increase`` sees none."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.facts.lookup import known
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import RATES, compared, scaled
from alerts.lint.promql.tree import Aggregation, Binary, Call, Node, Selector, selectors, walk
from alerts.lint.reading.query import Query


def _find(query: Query, _context: Context) -> Iterator[Found]:
    if query.alert is None:
        return
    for _, value, operator, limit in compared(query.tree):
        call = _rate(value)
        selector = call.arguments[0] if call is not None else None
        found = known(selector.name) if isinstance(selector, Selector) else None
        if call is None or not isinstance(selector, Selector) or found is None or not found.metric.born_late:
            continue
        if _has_births(query.tree, selector.name):
            continue
        if (operator == ">" and limit == 0) or (call.name == "increase" and operator == ">=" and limit <= 1):
            name = selector.name
            yield Found(
                at(query, call),
                f"{name} has no series before its first event and begins at 1: {call.name} doesn't see that one",
                f"increase({name}[15m]) > 0 or ({name} unless {name} offset 15m)",
            )


def _has_births(tree: Node, name: str) -> bool:
    """Whether an ``or`` adds what is there and wasn't before: ``x unless x offset 15m``."""
    for node, above in walk(tree):
        if isinstance(node, Binary) and node.operator == "unless":
            told = [{each.name for each in selectors(side)} for side in (node.left, node.right)]
            within_or = any(isinstance(each, Binary) and each.operator == "or" for each in above)
            if within_or and all(name in names for names in told):
                return True
    return False


def _rate(node: Node) -> Call | None:
    node, _ = scaled(node)
    while isinstance(node, Aggregation):
        node, _ = scaled(node.of)
    return node if isinstance(node, Call) and node.name in RATES else None


CHECK = Check(
    "increase-of-newborn",
    Severity.ERROR,
    "The first event of a counter that begins with it, by increase.",
    _find,
)
