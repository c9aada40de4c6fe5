"""Grafana's panels, on top of grafanalib: the one file that knows it.

grafanalib 0.7.1 writes what Grafana 6 read. Here stand the panel types that it gets wrong or hasn't got, as classes on its
own extension point, and factories that leave nothing out: every panel has a title, a unit, a description, and the board's
data source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import attr
from grafanalib import core
from grafanalib._gen import DashboardEncoder

from dashboards.normalise import Json, normalise
from dashboards.overrides import column_overrides, joined, override_of, reference, steps
from dashboards.shape import CALM, Line, Query, Unit, absent, description

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
_REDUCE = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_HIDE = {"legend": False, "tooltip": False, "viz": False}
_AXIS_PIXELS, _LEGEND_PIXELS = 80, 430
_TOOLTIP = {"mode": "multi", "sort": "desc", "hideZeros": False}


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
) -> Visual:
    """Values over time. ``lines`` are drawn where they have a value; the axis reaches them.

    ``aligned``: axes and legend are so wide that the same time stands below itself from panel to panel.
    """
    legend: Json = {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": True}
    if aligned:
        legend |= {"placement": "right", "width": _LEGEND_PIXELS}
    drawn = [line.value for line in lines if line.value is not None]
    custom = {
        "axisLabel": "",
        "axisPlacement": "auto",
        "axisWidth": _AXIS_PIXELS if aligned else None,
        "axisSoftMax": max(drawn) * 1.1 if drawn and max(drawn) > 0 else None,
        "drawStyle": "line",
        "fillOpacity": 40 if stacked else 8 if aligned else 0,
        "gradientMode": "none",
        "hideFrom": _HIDE,
        "lineInterpolation": "linear",
        "lineWidth": 0 if stacked else 1,
        "pointSize": 4,
        "scaleDistribution": {"log": 10, "type": "log"} if logarithmic else {"type": "linear"},
        "showPoints": "auto",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
        "thresholdsStyle": {"mode": "dashed" if drawn else "off"},
    }
    return _visual(
        "timeseries",
        title,
        unit,
        queries,
        do=do,
        lines=lines,
        size=size,
        least=None if logarithmic else least,
        most=most,
        links=links,
        custom=custom,
        colors="palette-classic",
        options={
            "legend": legend,
            "tooltip": _TOOLTIP,
        },
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
        options={
            "colorMode": "background" if background else "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "percentChangeColorMode": "standard",
            "reduceOptions": _REDUCE,
            "showPercentChange": False,
            "textMode": "value_and_name" if names else "value",
            "wideLayout": True,
        },
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
        options={
            "displayMode": "basic",
            "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
            "maxVizHeight": 300,
            "minVizHeight": 16,
            "minVizWidth": 8,
            "namePlacement": "top",
            "orientation": "horizontal",
            "reduceOptions": _REDUCE,
            "showUnfilled": True,
            "sizing": "auto",
            "valueMode": "color",
        },
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
        custom={"fillOpacity": 70, "hideFrom": _HIDE, "insertNulls": False, "lineWidth": 0, "spanNulls": False},
        options={
            "alignValue": "left",
            "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
            "mergeValues": True,
            "perPage": 20,
            "rowHeight": 0.8,
            "showValue": "never",
            "tooltip": {"mode": "single", "sort": "none", "hideZeros": False},
        },
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
    """A line for each subject: ``columns`` are the labels that say which, then one for each query, named by its legend."""
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
        custom={
            "align": "auto",
            "cellOptions": {"type": "auto"},
            "filterable": False,
            "inspect": False,
        },
        options={"cellHeight": "sm", "footer": {"countRows": False, "fields": "", "reducer": ["sum"], "show": False}, "showHeader": True},
    )
    return attr.evolve(
        made, overrides=column_overrides(queries, columns, links), transformations=joined(queries, columns, hidden)
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
    return Visual(
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


@dataclass(frozen=True, slots=True)
class Variable:
    """A list to pick from at the top of a board, filled by ``query``. ``several``: any number of values, all unless told."""

    name: str
    label: str
    query: str
    several: bool = True


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard. ``uid`` is what links know it by and never changes; ``annotations`` are Grafana's."""

    title: str
    uid: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    annotations: tuple[Json, ...] = ()
    since: str = "now-1h"

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
        return normalise(json.loads(json.dumps(made.to_json_data(), cls=DashboardEncoder)))


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
                title=row.title, collapsed=row.collapsed, gridPos=place, panels=inside if row.collapsed else []
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
        yield attr.evolve(panel, gridPos=core.GridPos(h=high, w=wide, x=left, y=top))
        left, height = left + wide, max(height, high)
