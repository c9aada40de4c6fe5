"""Which labels the result of an expression may have."""

from __future__ import annotations

from dataclasses import dataclass

from alerts.lint.promql.tree import (
    SETS,
    Aggregation,
    Binary,
    Call,
    Negative,
    Node,
    Number,
    Selector,
    Subquery,
    Text,
)

_KEEPING = frozenset({"topk", "bottomk", "limitk", "limit_ratio", ""})
_ABSENT = frozenset({"absent", "absent_over_time"})
_WITHOUT_SERIES = frozenset({"vector", "scalar", "time", "pi"})
_ADDING = frozenset({"label_replace", "label_join"})
_ANYTHING = frozenset({"info"})


@dataclass(frozen=True, slots=True)
class Labels:
    """``only`` these, or, where that is None, any but those that are ``gone``."""

    only: frozenset[str] | None = None
    gone: frozenset[str] = frozenset()

    def may_have(self, label: str) -> bool:
        """Whether a series of the result can bear a label."""
        return label in self.only if self.only is not None else label not in self.gone

    def with_(self, labels: frozenset[str]) -> Labels:
        """And these."""
        return Labels(None if self.only is None else self.only | labels, self.gone - labels)

    def without(self, labels: frozenset[str]) -> Labels:
        """But these."""
        return Labels(None if self.only is None else self.only - labels, self.gone | labels)

    def kept(self, labels: frozenset[str]) -> Labels:
        """No others than these."""
        return Labels(frozenset(label for label in labels if self.may_have(label)))

    def or_(self, other: Labels) -> Labels:
        """Those of either."""
        if self.only is not None and other.only is not None:
            return Labels(self.only | other.only)
        gone = [
            frozenset(label for label in one.gone if not two.may_have(label))
            for one, two in ((self, other), (other, self))
            if one.only is None
        ]
        return Labels(None, frozenset.intersection(*gone))


_NONE = Labels(frozenset())


def labels_of(node: Node) -> Labels:
    """Of an expression's result."""
    match node:
        case Selector():
            return Labels()
        case Negative(of=of) | Subquery(of=of):
            return labels_of(of)
        case Call():
            return _of_call(node)
        case Aggregation():
            return _of_aggregation(node)
        case Binary():
            return _of_binary(node)
        case _:
            return _NONE


def is_scalar(node: Node) -> bool:
    """Whether a value is a single number, with no series."""
    match node:
        case Number():
            return True
        case Call(name=name):
            return name in ("scalar", "time", "pi")
        case Negative(of=of):
            return is_scalar(of)
        case Binary(left=left, right=right):
            return is_scalar(left) and is_scalar(right)
        case _:
            return False


def _of_call(call: Call) -> Labels:
    if call.name in _ANYTHING:
        return Labels()
    if call.name in _WITHOUT_SERIES:
        return _NONE
    operand = next(
        (each for each in call.arguments if not isinstance(each, Text) and not is_scalar(each)), None
    )
    if operand is None:
        return _NONE
    if call.name in _ABSENT:
        matchers = operand.matchers if isinstance(operand, Selector) else ()
        return Labels(frozenset(each.label for each in matchers if each.operator == "="))
    found = labels_of(operand)
    if call.name in _ADDING:
        target = call.arguments[1]
        return found.with_(frozenset({target.value})) if isinstance(target, Text) else Labels()
    return found.without(frozenset({"le"})) if call.name == "histogram_quantile" else found


def _of_aggregation(node: Aggregation) -> Labels:
    of = labels_of(node.of)
    if node.name in _KEEPING:
        return of
    named = frozenset(node.labels)
    found = of.without(named) if node.drops else of.kept(named)
    if node.name == "count_values" and isinstance(node.parameter, Text):
        return found.with_(frozenset({node.parameter.value}))
    return found


def _of_binary(node: Binary) -> Labels:
    left, right = labels_of(node.left), labels_of(node.right)
    if node.operator in SETS:
        return left.or_(right) if node.operator == "or" else left
    if is_scalar(node.right):
        return left
    if is_scalar(node.left):
        return right
    if node.group:
        many = left if node.group == "left" else right
        return many.with_(frozenset(node.included))
    if node.on is not None:
        return left.kept(frozenset(node.on))
    return left.without(frozenset(node.ignoring or ()))
