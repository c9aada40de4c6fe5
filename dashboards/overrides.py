"""What single queries of a panel show otherwise than the panel, as Grafana's overrides and transformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboards.normalise import Json
from dashboards.shape import CALM, Line, Query, Unit


def reference(index: int) -> str:
    """The letter of a query."""
    return chr(ord("A") + index)


def steps(lines: Sequence[Line]) -> list[Json]:
    """Thresholds as Grafana writes them."""
    return [{"color": line.color, "value": line.value} for line in lines]


def override_of(index: int, queries: Sequence[Query]) -> list[Json]:
    """Of one query: at most one override."""
    query = queries[index]
    properties: list[Json] = []
    if query.unit is not None:
        properties.append(_property("unit", query.unit.value))
    if query.lines is not None or query.right:
        properties.append(_thresholds(query.lines or (CALM,)))
    if query.decimals is not None:
        properties.append(_property("decimals", query.decimals))
    if query.color is not None:
        properties.append(_property("color", {"mode": "fixed", "fixedColor": query.color}))
    if query.right:
        # the panel's lines and its end of the axis are of the left one
        properties += [
            _property("custom.axisPlacement", "right"),
            _property("custom.axisSoftMax", 1 if query.unit is Unit.RATIO else 0),
            _property("custom.fillOpacity", 0),
            _property("custom.scaleDistribution", {"type": "linear"}),
            _property("custom.thresholdsStyle", {"mode": "off"}),
            _property("max", None),
        ]
    if query.dashed:
        properties.append(_property("custom.lineStyle", {"fill": "dash", "dash": [6, 4]}))
    if query.band:
        properties += [
            _property("custom.fillBelowTo", queries[index - 1].legend),
            _property("custom.fillOpacity", 15),
        ]
    if not properties:
        return []
    return [{"matcher": {"id": "byFrameRefID", "options": reference(index)}, "properties": properties}]


def column_overrides(queries: Sequence[Query], columns: Sequence[str], links: Sequence[Json]) -> list[Json]:
    """Of a table, whose columns bear the legends of its queries; the last label carries the links."""
    overrides = [
        {
            "matcher": {"id": "byName", "options": query.legend},
            "properties": [
                _property("unit", (query.unit or Unit.COUNT).value),
                _property("noValue", "-"),
                _thresholds(query.lines or (CALM,)),
                _property("custom.cellOptions", {"type": "color-text" if query.lines else "auto"}),
                *([] if query.decimals is None else [_property("decimals", query.decimals)]),
            ],
        }
        for query in queries
    ]
    if links:
        matcher = {"id": "byName", "options": columns[-1]}
        overrides.append({"matcher": matcher, "properties": [_property("links", list(links))]})
    return overrides


def joined(queries: Sequence[Query], columns: Sequence[str], hidden: Sequence[str]) -> list[Json]:
    """A table's queries as its columns; of a query without a legend labels alone are shown."""
    several = len(queries) > 1
    values = {
        f"Value #{reference(index)}" if several else "Value": query.legend
        for index, query in enumerate(queries)
    }
    unnamed = [value for value, legend in values.items() if not legend]
    return [
        *([{"id": "merge", "options": {}}] if several else []),
        {
            "id": "organize",
            "options": {
                "excludeByName": dict.fromkeys(("Time", *hidden, *unnamed), True),
                "indexByName": {name: place for place, name in enumerate((*columns, *values))},
                "renameByName": {value: legend for value, legend in values.items() if legend},
            },
        },
    ]


def _property(name: str, value: Any) -> Json:  # noqa: ANN401 -- JSON
    return {"id": name, "value": value}


def _thresholds(lines: Sequence[Line]) -> Json:
    return _property("thresholds", {"mode": "absolute", "steps": steps(lines)})
