"""A link of the Incident board's chain: on the left what it is now, on the right how it came to that."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.context import Context
from dashboards.panels import Visual, stat, time_series
from dashboards.queries import Expression
from dashboards.shape import Line, Query, Unit, above

_LEFT, _RIGHT, _HIGH = 6, 18, 5
WORST, TYPICAL, MORE, OTHER = "red", "blue", "orange", "purple"
"""Colors of lines, the same in all links."""
Pair = tuple[Visual, Visual]


def pair(
    place: int,
    title: str,
    unit: Unit,
    now: Sequence[Query],
    then: Sequence[Query],
    *,
    do: str,
    lines: Sequence[Line],
    most: float | None = None,
    logarithmic: bool = False,
) -> Pair:
    """A line of the board; ``place`` is its number from the top."""
    named = f"{place}. {title}"
    return (
        stat(named, unit, *now, do=do, lines=lines, size=(_LEFT, _HIGH), names=True),
        time_series(
            title,
            unit,
            *then,
            do=do,
            lines=lines,
            size=(_RIGHT, _HIGH),
            most=most,
            aligned=True,
            logarithmic=logarithmic,
        ),
    )


def count(context: Context, flag: Expression, said: str) -> Query:
    """How many are in that state; one is bad."""
    return Query(
        flag.across("sum"), context.legend(said=said), unit=Unit.COUNT, lines=above(bad=1), decimals=0
    )
