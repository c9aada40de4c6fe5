"""Grafana's panels, on top of grafanalib: the one file that knows it.

grafanalib 0.7.1 writes what Grafana 6 read. Here stand the panel types that it gets wrong or hasn't got, as classes on
its own extension point, and factories that leave nothing out: every panel has a title, a unit, a description, and the
board's data source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import attr
from grafanalib import core  # type: ignore[import-untyped]
from grafanalib._gen import DashboardEncoder  # type: ignore[import-untyped]

from alerts.runbooks import BASE
from dashboards import options
from dashboards.normalise import Json, normalise
from dashboards.overrides import column_overrides, joined, override_of, reference, steps
from dashboards.shape import CALM, Line, Query, Unit, absent, description

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24


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


@dataclass(frozen=True, slots=True)
class Row:
    """A row of panels, left to right; they wrap where they are wider than the board."""

    title: str
    panels: tuple[Visual, ...]
    collapsed: bool = False


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
    links: Sequence[Json] = (),
    aligned: bool = False,
    logarithmic: bool = False,
    finest: str | None = None,
) -> Visual:
    """Values over time. ``lines`` are drawn where they have a value; the axis reaches them.

    ``finest``: the least time between two points, where there are so many series that each costs. ``aligned``: axes and
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
        links=links,
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
    background: bool = True,
    decimals: int | None = None,
    links: Sequence[Json] = (),
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
        links=links,
        instant=True,
        options=options.stat(names=names, background=background),
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


def state_timeline(
    title: str, *queries: Query, do: str, size: tuple[int, int] = (24, 6), bad: str = "red"
) -> Visual:
    """Flags over time as lanes: 0 and 1."""
    return _visual(
        "state-timeline",
        title,
        Unit.FLAG,
        queries,
        do=do,
        lines=(CALM, Line(1, bad)),
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
) -> Visual:
    """A line for each subject: ``columns`` are labels that say which, then one for each query, named by its legend."""
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
        options=options.TABLE,
    )
    return _changed(
        made,
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
                expr=query.expression.text,
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


def _changed(panel: Visual, **changes: Any) -> Visual:  # noqa: ANN401 -- fields of Visual
    made: Visual = attr.evolve(panel, **changes)
    return made


@dataclass(frozen=True, slots=True)
class Variable:
    """A list to pick from, filled by ``query``. ``several``: any number of values, all unless told."""

    name: str
    label: str
    query: str
    several: bool = True


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard. ``uid`` is what links know it by and never changes; ``annotations`` are Grafana's.

    ``runbooks``: where they are served, put for their folder in what panels say.
    """

    title: str
    uid: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    annotations: tuple[Json, ...] = ()
    since: str = "now-1h"
    runbooks: str = BASE

    def to_json(self) -> Json:
        """As Grafana 10.4 and later reads it."""
        made = core.Dashboard(
            title=f"{TITLE} / {self.title}",
            uid=self.uid,
            description=self.description,
            tags=[TITLE],
            editable=False,
            timezone="utc",
            time=core.Time(self.since, "now"),
            refresh="30s",
            graphTooltip=core.GRAPH_TOOLTIP_MODE_SHARED_CROSSHAIR,
            templating=core.Templating([_DATASOURCES, *map(_template, self.variables)]),
            annotations=core.Annotations(list(self.annotations)),
            links=[_LINK],
            panels=list(_placed(self.rows)),
        ).auto_panel_ids()
        text = json.dumps(made.to_json_data(), cls=DashboardEncoder)
        return normalise(json.loads(text.replace(f"{BASE}/", f"{self.runbooks.rstrip('/')}/")))


TITLE = "thrashold"
_LINK = {
    "asDropdown": False,
    "icon": "external link",
    "includeVars": True,
    "keepTime": True,
    "tags": [TITLE],
    "targetBlank": False,
    "title": "Boards",
    "tooltip": "",
    "type": "dashboards",
    "url": "",
}
_DATASOURCES = core.Template(name="datasource", label="Data source", query="prometheus", type="datasource")


def _template(variable: Variable) -> core.Template:
    return core.Template(
        name=variable.name,
        label=variable.label,
        query={"query": variable.query, "refId": variable.name},
        dataSource=DATASOURCE,
        includeAll=variable.several,
        multi=variable.several,
        # matches what lacks the label too, as where one Prometheus sees one cluster
        allValue=".*" if variable.several else None,
        refresh=core.REFRESH_ON_TIME_RANGE_CHANGE,
    )


def _placed(rows: Sequence[Row]) -> Iterator[core.Panel]:
    """Rows below one another; a collapsed one carries its panels."""
    top = 0
    for row in rows:
        if row.title:
            place = core.GridPos(h=1, w=COLUMNS, x=0, y=top)
            inside = list(_flowing(row.panels, top + 1))
            yield core.RowPanel(
                title=row.title,
                collapsed=row.collapsed,
                gridPos=place,
                panels=inside if row.collapsed else [],
            )
            top += 1
        if row.collapsed:
            continue
        panels = list(_flowing(row.panels, top))
        yield from panels
        top = max(panel.gridPos.y + panel.gridPos.h for panel in panels)


def _flowing(panels: Sequence[Visual], top: int) -> Iterator[Visual]:
    left = height = 0
    for panel in panels:
        wide, high = panel.size
        if left + wide > COLUMNS:
            top, left, height = top + height, 0, 0
        yield _changed(panel, gridPos=core.GridPos(h=high, w=wide, x=left, y=top))
        left, height = left + wide, max(height, high)
