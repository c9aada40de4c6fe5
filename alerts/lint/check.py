"""What a check is: a name, how bad it is, and a function from a query to what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from alerts.lint.problem import Severity
from alerts.lint.promql.tree import Node, Selector, walk
from alerts.lint.reading.document import Scalar, spots
from alerts.lint.reading.query import Query
from alerts.lint.reading.source import Place
from alerts.lint.settings import LintSettings


@dataclass(frozen=True, slots=True)
class Found:
    """One fault. ``fix`` is what to write instead."""

    place: Place
    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Context:
    """What a check may know beside the query. ``recorded``: names that the rules at hand make."""

    settings: LintSettings
    recorded: frozenset[str] = frozenset()
    several_clusters: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """``name`` is that of its file, of its test and of its page, with hyphens. ``summary``: one line for the index."""

    name: str
    severity: Severity
    summary: str
    find: Callable[[Query, Context], Iterator[Found]]


def at(query: Query, node: Node) -> Place:
    """Where a node of a query's expression stands in the file; where the expression does, of what has no place."""
    return query.expression.place(getattr(node, "at", 0))


def within(query: Query, scalar: Scalar, offset: int) -> Place:
    """Where a character of another value of the file stands."""
    places = spots(query.source, scalar)
    return query.source.place(places[offset] if offset < len(places) else scalar.at)


def readings(query: Query) -> Iterator[tuple[Selector, tuple[Node, ...]]]:
    """All series that a query reads, each with what it stands in."""
    for node, above in walk(query.tree):
        if isinstance(node, Selector):
            yield node, above
