"""Parses PromQL with ``promql-parser``, and says where in the text each node stands.

The parser, of the ``lint`` extra, knows no places; they are those of the same things in the text, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import promql_parser as promql

from alerts.lint.promql.tree import (
    Aggregation,
    Binary,
    Call,
    Matcher,
    Negative,
    Node,
    Number,
    Selector,
    Subquery,
    Text,
    Window,
)
from alerts.lint.promql.variables import Filled, filled
from alerts.lint.promql.words import Word, landmarks, most_levels

_MATCHERS = {
    str(promql.MatchOp.Equal): "=",
    str(promql.MatchOp.NotEqual): "!=",
    str(promql.MatchOp.Re): "=~",
    str(promql.MatchOp.NotRe): "!~",
}
_HOLT_WINTERS = promql.Function(
    "holt_winters",
    [promql.ValueType.Matrix, promql.ValueType.Scalar, promql.ValueType.Scalar],
    promql.ValueType.Vector,
)
"""Of Prometheus 2 alone: the parser, which has the grammar of 3, is told of it where it is used."""
_NAME_MATCHER = "__name__"
_MOST_LEVELS = 1000
"""Operators and brackets of an expression: from some thousands on the parser takes the whole process down."""
_TOO_DEEP = "is nested too deeply, or too long: record parts of it by rules of their own"


class PromqlError(ValueError):
    """What can't be parsed, and why."""


def parse(text: str) -> Node:
    """An expression, variables of Grafana in it or not. Raises PromqlError."""
    plain = filled(text)
    if most_levels(plain.text) > _MOST_LEVELS:
        raise PromqlError(_TOO_DEEP)
    try:
        return _Placing(text, plain).node(_parsed(plain.text))
    except PromqlError:
        raise
    except ValueError as error:
        said = str(error)
        if plain.variables:
            said += " (with something put in for its variables)"
        raise PromqlError(said) from error
    except RecursionError as error:
        raise PromqlError(_TOO_DEEP) from error


def _parsed(text: str) -> Any:  # noqa: ANN401 -- the parser's own
    if _HOLT_WINTERS.name not in text:
        return promql.parse(text)
    promql.register_extra_functions([_HOLT_WINTERS])
    try:
        return promql.parse(text)
    finally:
        promql.clear_extra_functions()


class _Placing:
    """Goes through the parser's tree in the order of the text, and takes the places of things as they come."""

    def __init__(self, text: str, plain: Filled) -> None:
        self._text, self._plain = text, plain
        marks = landmarks(plain.text)
        self._selectors = iter(marks.selectors)
        self._calls = iter(marks.calls)
        self._operators = iter(marks.operators)
        self._numbers = iter(marks.numbers)
        self._windows = iter(marks.windows)

    def node(self, node: Any) -> Node:  # noqa: ANN401, C901, PLR0911 -- the parser's; a line a kind
        """One of the parser's nodes, and all below it."""
        match node:
            case promql.ParenExpr():
                return self.node(node.expr)
            case promql.NumberLiteral():
                at = _next(self._numbers)
                return Number(at, None if self._plain.is_variable(at) else node.val)
            case promql.StringLiteral():
                return Text(node.val)
            case promql.UnaryExpr():
                return Negative(self.node(node.expr))
            case promql.VectorSelector():
                return self._selector(node, None)
            case promql.MatrixSelector():
                return self._selector(node.vector_selector, node.range)
            case promql.SubqueryExpr():
                of = self.node(node.expr)
                return Subquery(of, self._window(node.range), _seconds(node.step))
            case promql.Call():
                at = _next(self._calls)
                return Call(at, node.func.name, tuple(self.node(each) for each in node.args))
            case promql.AggregateExpr():
                return self._aggregation(node)
            case promql.BinaryExpr():
                return self._binary(node)
        raise TypeError(f"promql-parser gives a {type(node).__name__}, which isn't known here")

    def _selector(self, node: Any, window: timedelta | None) -> Selector:  # noqa: ANN401
        at = _next(self._selectors)
        matchers = tuple(_matchers(node.matchers))
        name = node.name or next(
            (each.value for each in matchers if each.label == _NAME_MATCHER and each.operator == "="), ""
        )
        return Selector(
            at,
            name,
            tuple(each for each in matchers if each.label != _NAME_MATCHER),
            None if window is None else self._window(window),
            _seconds(node.offset) or 0.0,
        )

    def _window(self, given: timedelta | None) -> Window:
        word = next(self._windows, None)
        if word is None:
            return Window(_seconds(given), "")
        text = self._text[word.at : word.at + len(word.text)].strip()
        known = not self._plain.is_variable(word.at + word.text.find(word.text.strip()[:1]))
        return Window(_seconds(given) if known else None, text)

    def _aggregation(self, node: Any) -> Aggregation:  # noqa: ANN401
        at = _next(self._calls)
        parameter = None if node.param is None else self.node(node.param)
        of = self.node(node.expr)
        name = "" if self._plain.is_variable(at) else str(node.op)
        modifier = node.modifier
        drops = modifier is not None and modifier.type == promql.AggModifierType.Without
        return Aggregation(at, name, of, tuple(modifier.labels) if modifier else (), drops, parameter)

    def _binary(self, node: Any) -> Binary:  # noqa: ANN401
        left = self.node(node.lhs)
        at = _next(self._operators)
        right = self.node(node.rhs)
        operator, modifier = str(node.op).strip(), node.modifier
        if modifier is None:
            return Binary(at, operator, left, right)
        on = ignoring = None
        if modifier.matching is not None:
            labels = tuple(modifier.matching.labels)
            if modifier.matching.type == promql.LabelModifierType.Include:
                on = labels
            else:
                ignoring = labels
        included = tuple(modifier.group_labels or ())
        return Binary(at, operator, left, right, on, ignoring, _many_side(modifier), included)


def _matchers(matchers: Any) -> Iterable[Matcher]:  # noqa: ANN401 -- the parser's
    """Raises PromqlError."""
    if matchers.or_matchers:
        raise PromqlError("or between matchers is VictoriaMetrics's: Prometheus refuses it")
    for each in matchers.matchers:
        yield Matcher(each.name, _MATCHERS[str(each.op)], each.value)


def _many_side(modifier: Any) -> str:  # noqa: ANN401 -- the parser's
    if modifier.card == promql.VectorMatchCardinality.ManyToOne:
        return "left"
    return "right" if modifier.card == promql.VectorMatchCardinality.OneToMany else ""


def _next(words: Iterator[Word]) -> int:
    """Where the next of a kind stands; the beginning where the text has fewer than the tree."""
    word = next(words, None)
    return 0 if word is None else word.at


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
