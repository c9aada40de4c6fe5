"""Prometheus rule files and PrometheusRule resources into queries."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alerts.lint.reading.document import Listing, Node, Scalar, Table, value_of
from alerts.lint.reading.query import Alert, Contents, Expression, Group, Query, Trouble
from alerts.lint.reading.source import Source, UnreadableError

OPERATOR_KINDS = frozenset({"PrometheusRule"})
_DURATION = re.compile(r"(?:\d+(?:ms|[smhdwy]))+|0")
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}


def read_rules(source: Source, documents: tuple[Node, ...]) -> Contents | None:
    """All rules of a file; None where no document of it holds any."""
    found = [groups for document in documents for groups in _groups(document)]
    if not found:
        return None
    reading = _Reading(source)
    for groups in found:
        for group in groups.items:
            reading.add_group(group)
    return Contents(source, tuple(reading.queries), tuple(reading.troubles))


def duration_seconds(text: str) -> float:
    """Of ``1h30m``. Raises ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is no duration: write it as 90s, 5m or 1h30m")
    return sum(int(count) * _SECONDS[unit] for count, unit in _PART.findall(text))


def _groups(document: Node) -> Iterator[Listing]:
    """Lists of groups: those of a plain file, of a resource, of the resources of a List."""
    if not isinstance(document, Table):
        return
    if document.text("kind") in OPERATOR_KINDS:
        spec = document.table("spec")
        found = spec.entries.get("groups") if spec else None
    elif document.text("kind") is not None:
        for item in document.tables("items"):
            yield from _groups(item)
        return
    else:
        found = document.entries.get("groups")
    if isinstance(found, Listing):
        yield found


class _Reading:
    """Puts queries and troubles together."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.queries: list[Query] = []
        self.troubles: list[Trouble] = []

    def add_group(self, node: Node) -> None:
        """All rules of a group; what of it can't be read costs itself."""
        if not isinstance(node, Table):
            self._trouble(node.at, "a group has to be a table with name and rules")
            return
        interval = self._duration(node, "interval")
        group = Group(str(value_of(node.entries.get("name")) or ""), node.keys_at, interval)
        rules = node.entries.get("rules")
        if not isinstance(rules, Listing):
            if not isinstance(rules, Scalar) or rules.value is not None:
                self._trouble(node.key_at("rules"), f"group {group.name!r} has no list of rules")
            return
        first = True
        for rule in rules.items:
            try:
                self.queries.append(self._rule(rule, group, first=first))
                first = False
            except UnreadableError as error:
                self.troubles.append(Trouble(self._source.name, error.place, error.problem))

    def _rule(self, node: Node, group: Group, *, first: bool) -> Query:
        source = self._source
        if not isinstance(node, Table):
            raise UnreadableError(
                source.place(node.at), "a rule has to be a table with alert or record, and expr"
            )
        alert, record = node.text("alert"), node.text("record")
        if (alert is None) == (record is None):
            raise UnreadableError(source.place(node.at), "a rule has to have one of alert and record")
        name = alert or record or ""
        expr = node.entries.get("expr")
        if not isinstance(expr, Scalar) or not isinstance(expr.value, str | int | float):
            raise UnreadableError(
                source.place(node.key_at("expr")), f"rule {name!r} has no expression (expr)"
            )
        found = None
        if alert is not None:
            found = Alert(
                alert,
                node.key_at("alert"),
                self._duration(node, "for") or 0.0,
                node.scalars("labels"),
                node.scalars("annotations"),
                self._duration(node, "keep_firing_for") or 0.0,
            )
        expression = Expression.of(source, expr)
        return Query(source, expression, node.at, node.end, found, record or "", group, first)

    def _duration(self, node: Table, key: str) -> float | None:
        found = node.entries.get(key)
        value = value_of(found)
        if found is None or value is None:
            return None
        try:
            return duration_seconds(str(value))
        except ValueError as error:
            self._trouble(found.at, f"{key}: {error}")
            return None

    def _trouble(self, at: int, problem: str) -> None:
        self.troubles.append(Trouble(self._source.name, self._source.place(at), problem))
