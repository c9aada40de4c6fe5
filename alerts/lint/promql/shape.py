"""What expressions are about: what they compare, what of a value is left after what wraps it, what is a share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from alerts.lint.facts.lookup import known
from alerts.lint.facts.metric import Kind, Scale
from alerts.lint.promql.tree import (
    COMPARISONS,
    SETS,
    Aggregation,
    Binary,
    Call,
    Node,
    Number,
    Selector,
    Subquery,
    walk,
)

RATES = frozenset({"rate", "irate", "increase"})
_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
_SAME_VALUE_CALLS = frozenset(
    {
        *("last_over_time", "avg_over_time", "max_over_time", "min_over_time", "quantile_over_time"),
        *("label_replace", "label_join", "sort", "sort_desc", "sort_by_label", "sort_by_label_desc"),
        *("round", "ceil", "floor", "clamp", "clamp_min", "clamp_max", "abs", "scalar"),
    }
)
_SAME_VALUE_AGGREGATIONS = frozenset({"max", "min", "avg", "topk", "bottomk", "quantile"})
_PARTS_OF_A_WHOLE = (("hits_total", "queries_total"), ("hits_total", "lookups_total"))


class Comparison(NamedTuple):
    """A value and the number it is compared with, the value to the left."""

    node: Binary
    value: Node
    operator: str
    limit: float


class Share(NamedTuple):
    """A value that is a part of a whole, times ``factor``; ``of`` is what says so."""

    of: Selector | Binary
    factor: float


def compared(tree: Node) -> Iterator[Comparison]:
    """All comparisons with a number."""
    for node, _ in walk(tree):
        if isinstance(node, Binary) and node.operator in COMPARISONS:
            if isinstance(node.right, Number) and node.right.value is not None:
                yield Comparison(node, node.left, node.operator, node.right.value)
            elif isinstance(node.left, Number) and node.left.value is not None:
                operator = _MIRRORED.get(node.operator, node.operator)
                yield Comparison(node, node.right, operator, node.left.value)


def told(tree: Node) -> Node:
    """What an alert's ``$value``, or a panel, shows of an expression."""
    while isinstance(tree, Binary):
        if tree.operator in SETS:
            tree = tree.left
        elif tree.operator in COMPARISONS:
            tree = tree.right if isinstance(tree.left, Number) else tree.left
        else:
            break
    return tree


def bare(node: Node) -> Node:
    """An expression without what leaves the size of its value as it is."""
    while True:
        if isinstance(node, Call) and node.name in _SAME_VALUE_CALLS:
            node = next((each for each in node.arguments if not isinstance(each, Number)), node.arguments[0])
        elif (isinstance(node, Aggregation) and node.name in _SAME_VALUE_AGGREGATIONS) or isinstance(
            node, Subquery
        ):
            node = node.of
        else:
            return node


def scaled(node: Node) -> tuple[Node, float]:
    """What a value is made of, and the constant it was multiplied with."""
    factor = 1.0
    node = bare(node)
    while isinstance(node, Binary) and node.operator in ("*", "/"):
        if isinstance(node.right, Number) and node.right.value:
            factor *= node.right.value if node.operator == "*" else 1 / node.right.value
            node = bare(node.left)
        elif isinstance(node.left, Number) and node.left.value and node.operator == "*":
            factor *= node.left.value
            node = bare(node.right)
        else:
            break
    return node, factor


def share(node: Node) -> Share | None:
    """Whether a value is a share, as its gauge or its division says; None where neither is known to be one."""
    inner, factor = scaled(node)
    if isinstance(inner, Binary) and inner.operator == "-" and isinstance(inner.left, Number):
        rest = share(inner.right)
        whole = inner.left.value
        return Share(rest.of, rest.factor * factor) if rest and whole == rest.factor else None
    if isinstance(inner, Selector):
        found = known(inner.name)
        if found is None or found.metric.scale is Scale.OPEN:
            return None
        return Share(inner, factor * (1.0 if found.metric.scale is Scale.RATIO else 100.0))
    if isinstance(inner, Binary) and inner.operator == "/" and _is_part(inner):
        return Share(inner, factor)
    return None


def _is_part(division: Binary) -> bool:
    """The same series above and below the line, or hits over queries."""
    above, below = counted(division.left), counted(division.right)
    if above is None or below is None:
        return False
    if above.name == below.name != "":
        return True
    return any(above.name.endswith(one) and below.name.endswith(other) for one, other in _PARTS_OF_A_WHOLE)


def counted(node: Node) -> Selector | None:
    """The series of a sum of rates, or of a rate; None of anything else."""
    while True:
        node = bare(node)
        if isinstance(node, Aggregation) and node.name == "sum":
            node = node.of
        elif isinstance(node, Call) and node.name in RATES:
            node = node.arguments[0]
        elif isinstance(node, Binary) and node.operator in COMPARISONS and isinstance(node.right, Number):
            node = node.left
        else:
            return node if isinstance(node, Selector) else None


def is_mean(node: Node) -> bool:
    """Whether a value is a mean made of a sum and a count."""
    inner, _ = scaled(node)
    if not isinstance(inner, Binary) or inner.operator != "/":
        return False
    above, below = counted(inner.left), counted(inner.right)
    if above is None or below is None or not above.name.endswith("_sum") or not below.name.endswith("_count"):
        return False
    return above.name.removesuffix("_sum") == below.name.removesuffix("_count")


def is_counter(selector: Selector) -> bool:
    """Whether series are known to count: a name alone doesn't tell, there are gauges that end in _total."""
    found = known(selector.name)
    return found is not None and found.metric.kind is not Kind.GAUGE
