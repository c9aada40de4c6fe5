"""Options of Grafana's panels as it writes them itself, so that nothing is left to a version's defaults."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.normalise import Json

_REDUCE = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_HIDE = {"legend": False, "tooltip": False, "viz": False}
_SEEN = 1e-6
"""A line that lies lower is at 0: it asks for no room above it."""
_AXIS_PIXELS, _LEGEND_PIXELS = 80, 430
_NO_LEGEND = {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False}
_TEXT = {"titleSize": 14, "valueSize": 34}
"""Pixels: three of them fit into a quarter of a board, unit and all."""
TOOLTIP = {"mode": "multi", "sort": "desc", "hideZeros": False}
BARS = {
    "displayMode": "basic",
    "legend": _NO_LEGEND,
    "maxVizHeight": 300,
    "minVizHeight": 16,
    "minVizWidth": 8,
    "namePlacement": "top",
    "orientation": "horizontal",
    "reduceOptions": _REDUCE,
    "showUnfilled": True,
    "sizing": "auto",
    "valueMode": "color",
}
LANES = {
    "alignValue": "left",
    "legend": _NO_LEGEND,
    "mergeValues": True,
    "perPage": 20,
    "rowHeight": 0.8,
    "showValue": "never",
    "tooltip": {"mode": "single", "sort": "none", "hideZeros": False},
}
LANES_CUSTOM = {"fillOpacity": 70, "hideFrom": _HIDE, "lineWidth": 0}
TABLE_CUSTOM = {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": False, "inspect": False}


def legend(*, aligned: bool) -> Json:
    """Of values over time: newest and largest of each line; ``aligned``: as wide as those above and below it."""
    shown: Json = {
        "calcs": ["lastNotNull", "max"],
        "displayMode": "table",
        "placement": "bottom",
        "showLegend": True,
    }
    return shown | {"placement": "right", "width": _LEGEND_PIXELS} if aligned else shown


def lines(drawn: Sequence[float], *, stacked: bool, aligned: bool, logarithmic: bool) -> Json:
    """How values over time are drawn; the axis reaches the thresholds ``drawn`` beside them."""
    return {
        "axisLabel": "",
        "axisPlacement": "auto",
        "axisSoftMax": max(drawn) * 1.1 if drawn and max(drawn) > _SEEN else None,
        "axisWidth": _AXIS_PIXELS if aligned else None,
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


def stat(*, names: bool) -> Json:
    """Of a large number; several of them side by side bear ``names`` and are all as large."""
    shown: Json = {
        "colorMode": "background",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": _REDUCE,
        "showPercentChange": False,
        "textMode": "value_and_name" if names else "value",
        "wideLayout": True,
    }
    return shown | {"text": _TEXT} if names else shown


def table(sorted_by: str) -> Json:
    """Of lines with columns, from the smallest value of one of them on."""
    shown: Json = {"cellHeight": "sm", "showHeader": True}
    return shown | {"sortBy": [{"desc": False, "displayName": sorted_by}]} if sorted_by else shown
