"""Tables of engines: who is worst by one number, and what else is known of those."""

from __future__ import annotations

from dataclasses import replace

from dashboards.context import Context
from dashboards.panels import Visual, table
from dashboards.queries import Expression
from dashboards.shape import Line, Query, Unit


def column(expression: Expression, said: str, unit: Unit, lines: tuple[Line, ...], decimals: int) -> Query:
    """The worst rank of each engine."""
    return Query(
        expression.across("max", "engine"),
        said,
        unit=unit,
        lines=lines,
        decimals=decimals,
    )


def worst_engines(context: Context, count: int, title: str, by: Query, *more: Query, do: str) -> Visual:
    """The ``count`` engines of which ``by`` is largest, ``more`` of the same, and a link to each one's own board."""
    ranked = replace(by, expression=by.expression.ranked(count))
    return table(
        title,
        ranked,
        *(replace(each, expression=each.expression.among(ranked.expression)) for each in more),
        do=do,
        columns=(*context.settings.cluster_labels, "engine"),
        links=(context.to_worker("__data.fields"),),
    )
