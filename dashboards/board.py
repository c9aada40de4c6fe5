"""A board: its rows of panels, what is picked at its top, and its JSON, by grafanalib."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grafanalib import core  # type: ignore[import-untyped]
from grafanalib._gen import DashboardEncoder  # type: ignore[import-untyped]

from alerts.runbooks import BASE
from dashboards.normalise import Json, normalise
from dashboards.panels import DATASOURCE, Visual, changed

COLUMNS = 24
"""Of Grafana's grid."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of panels, left to right; they wrap where they are wider than the board."""

    title: str
    panels: tuple[Visual, ...]
    collapsed: bool = False


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
        yield changed(panel, gridPos=core.GridPos(h=high, w=wide, x=left, y=top))
        left, height = left + wide, max(height, high)
