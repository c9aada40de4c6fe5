"""What panels are made of beside Grafana's own shapes: units, lines, queries, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dashboards.queries import Expression
from exporter.signal import Scope, Signal


class Unit(StrEnum):
    """As Grafana names them. Bytes over links are decimal, as links are sold."""

    COUNT = "short"
    WHOLE = "locale"
    RATIO = "percentunit"
    SECONDS = "s"
    BYTES = "decbytes"
    BYTES_PER_SECOND = "Bps"
    PER_SECOND = "cps"
    CELSIUS = "celsius"
    WATTS = "watt"
    FLAG = "bool_yes_no"
    TIMES = "suffix: x"


@dataclass(frozen=True, slots=True)
class Line:
    """From ``value`` upwards things have ``color``; the first of several is what is below all others."""

    value: float | None
    color: str


CALM = Line(None, "green")
NEUTRAL = Line(None, "#3a4556")


def above(warning: float | None = None, bad: float | None = None) -> tuple[Line, ...]:
    """Green, orange from ``warning``, red from ``bad``."""
    return (
        CALM,
        *(() if warning is None else (Line(warning, "orange"),)),
        *(() if bad is None else (Line(bad, "red"),)),
    )


def proven(bad: float, unproven: str = NEUTRAL.color) -> tuple[Line, ...]:
    """Red from ``bad``; what is below is no good news, as a lower bound may be 0 whatever is true."""
    return (Line(None, unproven), Line(bad, "red"))


def beyond(limit: float) -> tuple[Line, ...]:
    """Green up to ``limit`` itself, red above it: for limits that may be met, 0 among them."""
    return (CALM, Line(limit + 1e-9, "red"))


def below(bad: float, warning: float | None = None) -> tuple[Line, ...]:
    """Red below ``bad``, orange below ``warning``, else green."""
    if warning is None:
        return (Line(None, "red"), Line(bad, "green"))
    return (Line(None, "red"), Line(bad, "orange"), Line(warning, "green"))


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and how it is shown; what is None is as the panel says.

    ``legend``: Grafana's pattern, labels in double braces. ``color``: a fixed one for all its series. ``band``: filled
    down to the query before it.
    """

    expression: Expression
    legend: str
    unit: Unit | None = None
    lines: tuple[Line, ...] | None = None
    color: str | None = None
    band: bool = False
    right: bool = False
    dashed: bool = False
    decimals: int | None = None


ABSENT = {
    Scope.RANK: "not reported by this engine",
    Scope.ENGINE: "not reported by this engine",
    Scope.GPU: "no GPU tells this",
    Scope.GATEWAY: "no gateway is read",
    Scope.SOURCE: "no source tells this",
    Scope.SIDECAR: "no sidecar tells this",
}
"""What a panel says where it has nothing to show."""
NOTHING_FIRES = "nothing fires"


def signals_of(queries: Sequence[Query]) -> tuple[Signal, ...]:
    """All of them, once, in order."""
    return tuple(dict.fromkeys(signal for query in queries for signal in query.expression.signals))


def absent(queries: Sequence[Query]) -> str:
    """What a panel of these queries says where it has nothing to show."""
    signals = queries[0].expression.signals
    return ABSENT[signals[0].scope] if signals else NOTHING_FIRES


def description(queries: Sequence[Query], do: str) -> str:
    """What a panel's signals mean and how sure they are, from the signals themselves, and what to do."""
    told = [
        f"`{signal.full_name}` ({signal.confidence.value.replace('_', ' ')}): {signal.help}"
        for signal in signals_of(queries)
    ]
    return "\n\n".join([*told, f"**What to do:** {do}"])
