"""PromQL as a tree. ``at`` of each node is where it stands in the expression's text, from 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Matcher(NamedTuple):
    """``operator`` is ``=``, ``!=``, ``=~`` or ``!~``."""

    label: str
    operator: str
    value: str


class Window(NamedTuple):
    """A range in brackets: how long, and as it is written. ``seconds`` of a variable of Grafana is None."""

    seconds: float | None
    text: str


@dataclass(frozen=True, slots=True)
class Selector:
    """Series by name and matchers; ``name`` is empty where a matcher says it. ``offset_seconds``: 0 is none."""

    at: int
    name: str
    matchers: tuple[Matcher, ...] = ()
    window: Window | None = None
    offset_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Call:
    """A function."""

    at: int
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """``labels`` are those of ``by``, or with ``drops`` of ``without``. ``name`` is empty where a variable says it."""

    at: int
    name: str
    of: Node
    labels: tuple[str, ...]
    drops: bool
    parameter: Node | None = None


@dataclass(frozen=True, slots=True)
class Binary:
    """``at`` is its operator. ``on``, ``ignoring``: None where not said; ``group`` is ``left``, ``right`` or empty."""

    at: int
    operator: str
    left: Node
    right: Node
    on: tuple[str, ...] | None = None
    ignoring: tuple[str, ...] | None = None
    group: str = ""
    included: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Number:
    """``value`` is None where a variable of Grafana stands for it."""

    at: int
    value: float | None


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    value: str


@dataclass(frozen=True, slots=True)
class Negative:
    """A minus before an expression."""

    of: Node


@dataclass(frozen=True, slots=True)
class Subquery:
    """An expression over a range."""

    of: Node
    window: Window
    step_seconds: float | None


Node = Selector | Call | Aggregation | Binary | Number | Text | Negative | Subquery
COMPARISONS = frozenset({"==", "!=", ">", "<", ">=", "<="})
SETS = frozenset({"and", "or", "unless"})


def children(node: Node) -> tuple[Node, ...]:
    """What a node is made of, in the order of the text."""
    match node:
        case Call(arguments=arguments):
            return arguments
        case Aggregation(of=of, parameter=parameter):
            return (of,) if parameter is None else (parameter, of)
        case Binary(left=left, right=right):
            return (left, right)
        case Negative(of=of) | Subquery(of=of):
            return (of,)
        case _:
            return ()


def walk(node: Node, above: tuple[Node, ...] = ()) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """A node and all below it, each with what it stands in, the outermost first."""
    yield node, above
    for child in children(node):
        yield from walk(child, (*above, node))


def selectors(node: Node) -> Iterator[Selector]:
    """All series that an expression reads."""
    for each, _ in walk(node):
        if isinstance(each, Selector):
            yield each
