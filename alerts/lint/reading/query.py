"""What checks look at: one expression, with the rule or the panel that it stands in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from alerts.lint.promql.parse import PromqlError, parse
from alerts.lint.promql.tree import Node, Number
from alerts.lint.reading.document import Scalar, spots
from alerts.lint.reading.source import Place, Source

_NOTHING = Number(0, None)


@dataclass(frozen=True, slots=True)
class Expression:
    """PromQL. ``tree`` is a lone number where it can't be parsed; ``refusal`` says why then, and is empty else."""

    source: Source
    text: str
    tree: Node
    at: int
    spots: tuple[int, ...]
    refusal: str = ""

    @classmethod
    def of(cls, source: Source, scalar: Scalar, text: str | None = None, skipped: int = 0) -> Expression:
        """What a value holds; ``text``: that part of it that begins after ``skipped`` characters."""
        whole = scalar.value if isinstance(scalar.value, str) else str(scalar.value)
        part = whole if text is None else text
        places = spots(source, scalar)[skipped : skipped + len(part)]
        try:
            tree, refusal = parse(part), ""
        except PromqlError as error:
            tree, refusal = _NOTHING, str(error)
        return cls(source, part, tree, scalar.at, places, refusal)

    def place(self, at: int) -> Place:
        """Of a character of the expression, in the file."""
        found = self.spots[min(at, len(self.spots) - 1)] if self.spots else self.at
        return self.source.place(found)


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated together. ``interval_seconds`` is None where it isn't said."""

    name: str
    keys_at: Mapping[str, int]
    interval_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert rule; ``for_seconds`` is 0 where it waits for nothing, ``keep_firing_seconds`` where it ends at once."""

    name: str
    at: int
    for_seconds: float
    labels: Mapping[str, Scalar]
    annotations: Mapping[str, Scalar]
    keep_firing_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of a board, a variable or an annotation. ``path`` is where it is, for people; ``kind`` Grafana's."""

    path: str
    kind: str = ""
    unit: Scalar | None = None
    limits: tuple[Scalar, ...] = ()
    legend: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One expression and what is around it: a rule (``alert``, or ``record`` with its name), or a panel.

    ``start`` and ``end`` bound the rule or the panel's query in the file. ``first``: of its group.
    """

    source: Source
    expression: Expression
    start: int
    end: int
    alert: Alert | None = None
    record: str = ""
    group: Group | None = None
    first: bool = False
    panel: Panel | None = None

    @property
    def name(self) -> str:
        """Of the alert, the recorded series or the panel, for people."""
        if self.alert is not None:
            return self.alert.name
        return self.panel.path if self.panel is not None else self.record

    @property
    def tree(self) -> Node:
        """Of its expression."""
        return self.expression.tree


@dataclass(frozen=True, slots=True)
class Trouble:
    """What of a file can't be read."""

    file: str
    place: Place
    problem: str


@dataclass(frozen=True, slots=True)
class Contents:
    """Of one file."""

    source: Source
    queries: tuple[Query, ...] = ()
    troubles: tuple[Trouble, ...] = field(default=())
