"""An alert: what it fires on, how soon, whom it wakes, and why it is there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from alerts.causes import Cause
from alerts.conditions import Condition, Rendering
from exporter.signal import Scope

_NAME = re.compile(r"[A-Z][A-Za-z0-9]+")


class Severity(StrEnum):
    """Who is told."""

    PAGE = "page"
    """Somebody, at once: users suffer, or will before anybody looks."""
    WARNING = "warning"
    """Somebody, at work."""
    INFO = "info"
    """Nobody: it explains others, and heads of reports read it."""


@dataclass(frozen=True, slots=True)
class Expression:
    """What a tree of comparisons can't say (burn rates, absence, counters), as PromQL for a rendering.

    ``labels``: those that its series bear beside the cluster's.
    """

    write: Callable[[Rendering], str]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alert:
    """``condition`` has to hold for ``for_seconds``; then it fires, and ``keep_firing_seconds`` beyond its end.

    ``summary`` is one line with Prometheus's templates, ``meaning`` what it says to somebody who sees it for the first
    time. ``quiet_under``: names of alerts that explain this one where both are about the same subject; then this one
    isn't sent. ``consequence_of``: names of alerts that explain it wherever in the cluster they are: an engine that
    stops leaves its load to the others. ``brought_by``: names of alerts that may bring it about in their cluster, and
    under which it is sent all the same: they don't say enough of what users suffer. ``counts``: names of alerts that it
    is the number of. ``worst`` adds to the description whom the labels don't name: a template that
    asks Prometheus while the alert fires. Raises ValueError.
    """

    name: str
    severity: Severity
    cause: Cause
    condition: Condition | Expression
    summary: str
    meaning: str
    for_seconds: int = 60
    keep_firing_seconds: int = 120
    quiet_under: tuple[str, ...] = ()
    consequence_of: tuple[str, ...] = ()
    brought_by: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    worst: Callable[[Rendering], str] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"an alert named {self.name!r}: take CamelCase")
        if self.for_seconds < 0 or self.keep_firing_seconds < 0:
            raise ValueError(f"{self.name}: for_seconds and keep_firing_seconds can't be below 0")

    @property
    def labels(self) -> tuple[str, ...]:
        """That tell one firing from another, beside the cluster's."""
        return (
            self.condition.labels if isinstance(self.condition, Expression) else self.condition.scope.labels
        )

    @property
    def scope(self) -> Scope | None:
        """Of its condition; None of an expression."""
        return None if isinstance(self.condition, Expression) else self.condition.scope

    def promql(self, rendering: Rendering) -> str:
        """Its expression."""
        condition = self.condition
        return (
            condition.write(rendering) if isinstance(condition, Expression) else condition.promql(rendering)
        )

    def description(self, rendering: Rendering) -> str:
        """What it says, with Prometheus's templates."""
        return self.meaning + (" " + self.worst(rendering) if self.worst else "")
