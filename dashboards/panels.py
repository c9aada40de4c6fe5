"""Grafana's panels, on top of grafanalib, which this file and ``board.py`` alone know.

grafanalib 0.7.1 writes what Grafana 6 read. Here stand the panel types that it gets wrong or hasn't got, as classes on
its own extension point, and factories that leave nothing out: every panel has a title, a unit, a description, and the
board's data source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attr
from grafanalib import core  # type: ignore[import-untyped]

from dashboards import options
from dashboards.normalise import Json
from dashboards.overrides import column_overrides, joined, override_of, reference, steps
from dashboards.shape import CALM, Line, Query, Unit, above, absent, description

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


@attr.s(kw_only=True)
class Visual(core.Panel):  # type: ignore[misc] # grafanalib has no types
    """A panel with one query language and one way to say units, lines and what is shown where there is nothing."""

    kind: str = attr.ib()
    options: Mapping[str, Any] = attr.ib()
    unit: Unit = attr.ib()
    lines: Sequence[Line] = attr.ib()
    nothing: str = attr.ib()
    colors: str = attr.ib(default="thresholds")
    custom: Mapping[str, Any] | None = attr.ib(default=None)
    overrides: Sequence[Json] = attr.ib(factory=list)
    least: float | None = attr.ib(default=None)
    most: float | None = attr.ib(default=None)
    decimals: int | None = attr.ib(default=None)
    data_links: Sequence[Json] = attr.ib(factory=list)
    mappings: Sequence[Json] = attr.ib(factory=list)
    size: tuple[int, int] = attr.ib()

    def to_json_data(self) -> Json:
        """As Grafana reads it."""
        defaults = {
            "color": {"mode": self.colors},
            "custom": self.custom,
            "decimals": self.decimals,
            "links": list(self.data_links),
            "mappings": list(self.mappings),
            "max": self.most,
            "min": self.least,
            "noValue": self.nothing,
            "thresholds": {"mode": "absolute", "steps": steps(self.lines)},
            "unit": self.unit.value,
        }
        made: Json = self.panel_json(
            {
                "type": self.kind,
                "options": dict(self.options),
                "fieldConfig": {"defaults": defaults, "overrides": list(self.overrides)},
            }
        )
        return made


_UNTYPED: Any = Visual
"""Fields of grafanalib's class are unknown to type checkers."""


def time_series(
    title: str,
    unit: Unit,
    *queries: Query,
    do: str,
    lines: Sequence[Line] = (CALM,),
    size: tuple[int, int] = (12, 8),
    stacked: bool = False,
    least: float | None = 0,
    most: float | None = None,
    aligned: bool = False,
    logarithmic: bool = False,
    finest: str | None = None,
) -> Visual:
    """Values over time. ``lines`` are drawn where they have a value; the axis reaches them.

    ``finest``: the least time between two points, where there are so many series that each costs, or where what is read
    is recorded less often than it would be asked for. ``aligned``: axes and
    legend are so wide that the same time stands below itself from panel to panel.
    """
    drawn = [line.value for line in lines if line.value is not None]
    custom = options.lines(drawn, stacked=stacked, aligned=aligned, logarithmic=logarithmic)
    return _visual(
        "timeseries",
        title,
        unit,
        queries,
        do=do,
        lines=lines,
        size=size,
        interval=finest,
        least=None if logarithmic else least,
        most=most,
        custom=custom,
        colors="palette-classic",
        options={"legend": options.legend(aligned=aligned), "tooltip": options.TOOLTIP},
    )


def stat(
    title: str,
    unit: Unit,
    *queries: Query,
    do: str,
    lines: Sequence[Line] = (CALM,),
    size: tuple[int, int] = (4, 4),
    names: bool = False,
    decimals: int | None = None,
) -> Visual:
    """The newest value, large, in the color of its line; with ``names`` its legend beside it."""
    return _visual(
        "stat",
        title,
        unit,
        queries,
        do=do,
        lines=lines,
        size=size,
        decimals=decimals,
        instant=True,
        options=options.stat(names=names),
    )


def bar_gauge(
    title: str,
    unit: Unit,
    *queries: Query,
    do: str,
    lines: Sequence[Line],
    size: tuple[int, int] = (8, 12),
    most: float | None = None,
    links: Sequence[Json] = (),
) -> Visual:
    """A bar for each series, of what they are now."""
    return _visual(
        "bargauge",
        title,
        unit,
        queries,
        do=do,
        lines=lines,
        size=size,
        least=0,
        most=most,
        links=links,
        instant=True,
        options=options.BARS,
    )


def state_timeline(title: str, *queries: Query, do: str, size: tuple[int, int] = (24, 6)) -> Visual:
    """Flags over time as lanes: 0 and 1. Outside Grafana it can't be drawn: put a time series beside it."""
    return _visual(
        "state-timeline",
        title,
        Unit.FLAG,
        queries,
        do=do,
        lines=above(bad=1),
        size=size,
        custom=options.LANES_CUSTOM,
        options=options.LANES,
    )


def table(
    title: str,
    *queries: Query,
    do: str,
    columns: Sequence[str],
    size: tuple[int, int] = (24, 9),
    hidden: Sequence[str] = (),
    links: Sequence[Json] = (),
    nothing: str = "",
    sorted_by: str = "",
) -> Visual:
    """A line for each subject: ``columns`` are labels that say which, then one for each query, named by its legend.

    ``nothing``: what an empty one says, where that isn't that its signals are absent. ``sorted_by``: a column; else as
    Prometheus answers, which is in order for what is ranked alone.
    """
    made = _visual(
        "table",
        title,
        Unit.COUNT,
        queries,
        do=do,
        lines=(CALM,),
        size=size,
        instant=True,
        as_table=True,
        custom=options.TABLE_CUSTOM,
        options=options.table(sorted_by),
    )
    return changed(
        made,
        nothing=nothing or made.nothing,
        overrides=column_overrides(queries, columns, links),
        transformations=joined(queries, columns, hidden),
    )


def _visual(
    kind: str,
    title: str,
    unit: Unit,
    queries: Sequence[Query],
    *,
    do: str,
    size: tuple[int, int],
    instant: bool = False,
    as_table: bool = False,
    links: Sequence[Json] = (),
    **more: Any,  # noqa: ANN401 -- fields of Visual
) -> Visual:
    made: Visual = _UNTYPED(
        kind=kind,
        title=title,
        unit=unit,
        size=size,
        dataSource=DATASOURCE,
        maxDataPoints=None,
        description=description(queries, do),
        nothing=absent(queries),
        data_links=list(links),
        overrides=[override for index in range(len(queries)) for override in override_of(index, queries)],
        targets=[
            core.Target(
                expr=query.expression.now if instant else query.expression.text,
                legendFormat="" if as_table else query.legend,
                refId=reference(index),
                instant=instant,
                format="table" if as_table else "time_series",
                datasource=DATASOURCE,
            )
            for index, query in enumerate(queries)
        ],
        **more,
    )
    return made


def changed(panel: Visual, **changes: Any) -> Visual:  # noqa: ANN401 -- fields of Visual
    """The same panel but for some of its fields."""
    made: Visual = attr.evolve(panel, **changes)
    return made
