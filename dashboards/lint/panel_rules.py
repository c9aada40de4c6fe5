"""Rules for a single panel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from dashboards.lint.finding import Panel, table, tables
from dashboards.queries import WINDOW
from exporter.derive.latency import SLO_EVENTS

_ASKING_NOTHING = ("alertlist", "annolist", "dashlist", "gettingstarted", "news", "text", "welcome")
"""Types that show what Grafana itself knows, or words: no data source, no unit, and never "No data"."""
KINDS = (
    *_ASKING_NOTHING,
    "barchart",
    "bargauge",
    "candlestick",
    "canvas",
    "datagrid",
    "debug",
    "flamegraph",
    "gauge",
    "geomap",
    "heatmap",
    "histogram",
    "live",
    "logs",
    "nodeGraph",
    "piechart",
    "stat",
    "state-timeline",
    "status-history",
    "table",
    "timeseries",
    "traces",
    "trend",
    "xychart",
)
"""Types that come with Grafana and are no Angular plugin."""
_RATE = re.compile(r"\b(?:rate|irate|increase)\s*\([^\[]*\[([^\]]+)\]")


def datasource(panel: Panel) -> Iterator[str]:
    """Its own and its queries'."""
    for each in (panel, *tables(panel, "targets")) if _asks(panel) else ():
        told = each.get("datasource")
        if not isinstance(told, Mapping) or told.get("uid") not in ("${datasource}", "$datasource"):
            yield f"its data source isn't the board's variable: {told}"
            return


def title_and_description(panel: Panel) -> Iterator[str]:
    """Somebody sees it for the first time, at night."""
    yield from (f"no {key}" for key in ("title", "description") if not panel.get(key))


def units(panel: Panel) -> Iterator[str]:
    """A number without one is a riddle."""
    if _asks(panel) and not _defaults(panel).get("unit"):
        yield "no unit"


def says_nothing(panel: Panel) -> Iterator[str]:
    """Absent isn't zero, and is to be said in words."""
    if _asks(panel) and not _defaults(panel).get("noValue"):
        yield "no noValue: it would say No data"


def has_targets(panel: Panel) -> Iterator[str]:
    """A panel without queries is empty."""
    if _asks(panel) and not tables(panel, "targets"):
        yield "no queries"


def rate_interval(panel: Panel) -> Iterator[str]:
    """Windows follow the scrape interval and the zoom.

    Burn rates of objectives are over fixed windows by definition, and what is asked once is of now, however far one
    zooms out.
    """
    for target in tables(panel, "targets"):
        if target.get("instant"):
            continue
        text = str(target.get("expr", ""))
        for window in _RATE.findall(text):
            if window != WINDOW and SLO_EVENTS.full_name not in text:
                yield f"a rate over {window} instead of {WINDOW} in query {target.get('refId')}"


def known_kind(panel: Panel) -> Iterator[str]:
    """Angular's panels are gone."""
    if panel.get("type") not in KINDS:
        yield f"panel type {panel.get('type')} isn't one that comes with Grafana: {', '.join(sorted(KINDS))}"


def no_coarse_points(panel: Panel) -> Iterator[str]:
    """A limit of points coarsens every window."""
    if "maxDataPoints" in panel:
        yield "maxDataPoints is set: leave it to the panel's width"


def _asks(panel: Panel) -> bool:
    return panel.get("type") not in _ASKING_NOTHING


def _defaults(panel: Panel) -> Mapping[str, object]:
    return table(table(panel, "fieldConfig"), "defaults")


PANEL_RULES: Mapping[str, Callable[[Panel], Iterator[str]]] = {
    "panel-datasource-rule": datasource,
    "panel-title-description-rule": title_and_description,
    "panel-units-rule": units,
    "panel-says-nothing": says_nothing,
    "panel-no-targets-rule": has_targets,
    "target-rate-interval-rule": rate_interval,
    "panel-kind": known_kind,
    "panel-max-data-points": no_coarse_points,
}
"""By name, as dashboard-linter has it where it has it."""
