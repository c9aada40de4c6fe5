"""Grafana boards into queries: panels, wherever they are nested, variables and annotations.

Boards come as they are exported, as the API wraps them (``{"dashboard": ...}``), with panels in rows, with rows of
before Grafana 5, as library panels, and as resources of Grafana 12. All of them hold queries as tables with ``expr``
below something with a title; so that is what is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from alerts.lint.reading.document import Listing, Node, Scalar, Table, value_of
from alerts.lint.reading.query import Contents, Expression, Panel, Query
from alerts.lint.reading.source import Source, UnreadableError

_FUNCTION = re.compile(
    r"\s*(?:label_values\s*\((?P<labels>.+),\s*[\w$]+\s*\)|query_result\s*\((?P<result>.+)\))\s*", re.DOTALL
)
_PROMETHEUS = ("prometheus", "mimir", "thanos", "cortex", "victoriametrics")
_OTHERS = (
    "loki",
    "graphite",
    "influx",
    "elastic",
    "tempo",
    "mysql",
    "postgres",
    "cloudwatch",
    "testdata",
    "__expr__",
)
_COLOURED = frozenset({"stat", "gauge", "bargauge", "singlestat", "table"})
"""Panels that are coloured by their thresholds unless they are told otherwise."""
_CALCULATING = "calculateField"
_WRAPPERS = ("dashboard", "model", "spec", "result")
_SIGNS = ("panels", "rows", "targets", "templating", "elements")


def read_board(source: Source, document: Node) -> Contents:
    """All queries of a board, or of a list of them. Raises UnreadableError: it is none."""
    boards = document.items if isinstance(document, Listing) else (document,)
    queries: list[Query] = []
    for board in boards:
        if not is_board(board):
            raise UnreadableError(
                source.place(board.at),
                "is no board of Grafana: it has neither panels nor rows, and no dashboard or model that has",
            )
        queries += _queries(source, board, Panel(""), "")
    return Contents(source, tuple(queries))


def is_board(node: Node) -> bool:
    """Whether something has what boards and library panels have."""
    if not isinstance(node, Table):
        return False
    if any(key in node.entries for key in _SIGNS):
        return True
    return any(is_board(inner) for key in _WRAPPERS if (inner := node.table(key)) is not None)


def _queries(source: Source, node: Node, panel: Panel, datasource: str) -> Iterator[Query]:
    """Of a part of a board, in the order of the file."""
    if isinstance(node, Listing):
        for item in node.items:
            yield from _queries(source, item, panel, datasource)
    if not isinstance(node, Table):
        return
    panel = _panel(node, panel)
    datasource = _datasource(node) or datasource
    expr = node.entries.get("expr")
    if isinstance(expr, Scalar) and isinstance(expr.value, str) and expr.value.strip() and _asks(datasource):
        legend = node.entries.get("legendFormat")
        of_query = replace(panel, legend=legend if isinstance(legend, Scalar) else None)
        yield Query(source, Expression.of(source, expr), node.at, node.end, panel=of_query)
    for key, child in node.entries.items():
        if key == "templating" and isinstance(child, Table):
            yield from _variables(source, child, panel)
        elif isinstance(child, Table | Listing):
            yield from _queries(source, child, panel, datasource)


def _variables(source: Source, templating: Table, panel: Panel) -> Iterator[Query]:
    for variable in templating.tables("list"):
        held = variable.entries.get("query")
        if isinstance(held, Table):
            held = held.entries.get("query")
        if variable.text("type") not in ("query", None) or not _asks(_datasource(variable)):
            continue
        if not isinstance(held, Scalar) or not isinstance(held.value, str):
            continue
        found = _FUNCTION.fullmatch(held.value)
        if found is None or found.lastgroup is None:
            continue
        name = variable.text("name") or ""
        begin = found.start(found.lastgroup)
        expression = Expression.of(source, held, found[found.lastgroup], begin)
        where = Panel(_under(panel.path, f"variable {name}"), "variable")
        yield Query(source, expression, variable.at, variable.end, panel=where)


def _panel(node: Table, outer: Panel) -> Panel:
    """What ``node`` is: a panel, or something within ``outer``."""
    title = node.text("title") or (node.text("name") if "expr" in node.entries else None)
    kind = node.text("type") or ""
    if title is None and not ({"targets", "fieldConfig"} & node.entries.keys()):
        return outer
    path = _under(outer.path, title or (f"panel {number}" if (number := _number(node)) else ""))
    unit: Node | None = None
    limits: tuple[Scalar, ...] = ()
    config = node.table("fieldConfig")
    defaults = config.table("defaults") if config else None
    if config is not None and defaults is not None:
        changed = _changed_later(node, config)
        unit = None if "unit" in changed else defaults.entries.get("unit")
        limits = () if "thresholds" in changed else _limits(defaults, kind)
    else:
        axes = [axis.entries.get("format") for axis in node.tables("yaxes")]
        unit = axes[0] if axes else node.entries.get("format")
    return Panel(path, kind, unit if isinstance(unit, Scalar) else None, limits)


def _changed_later(node: Table, config: Table) -> set[str]:
    """What overrides set for some of the series: which ones can't be told. What calculates makes other values."""
    changed = {
        name
        for override in config.tables("overrides")
        for each in override.tables("properties")
        if (name := each.text("id")) is not None
    }
    if any(each.text("id") == _CALCULATING for each in node.tables("transformations")):
        changed |= {"unit", "thresholds"}
    return changed


def _limits(defaults: Table, kind: str) -> tuple[Scalar, ...]:
    """Where a panel's colours change, or its lines are. Grafana puts 80 into each new panel, shown or not."""
    thresholds, colour, custom = (defaults.table(key) for key in ("thresholds", "color", "custom"))
    if thresholds is None or thresholds.text("mode") == "percentage":
        return ()
    style = custom.table("thresholdsStyle") if custom else None
    drawn = style is not None and style.text("mode") not in (None, "off")
    mode = colour.text("mode") if colour else None
    coloured = mode == "thresholds" or (mode is None and kind in _COLOURED)
    if not drawn and not coloured:
        return ()
    steps = [step.entries.get("value") for step in thresholds.tables("steps")]
    return tuple(step for step in steps if isinstance(step, Scalar) and isinstance(step.value, float))


def _number(node: Table) -> str:
    value = value_of(node.entries.get("id"))
    return f"{value:g}" if isinstance(value, float) else ""


def _under(path: str, name: str) -> str:
    return " > ".join(part for part in (path, name) if part)


def _datasource(node: Table) -> str:
    """What a panel or a query asks, as far as it says; a mixed panel leaves it to its queries."""
    found = node.entries.get("datasource")
    if isinstance(found, Table):
        return (found.text("type") or found.text("uid") or "").lower()
    value = value_of(found)
    return value.lower() if isinstance(value, str) and "mixed" not in value.lower() else ""


def _asks(datasource: str) -> bool:
    """Whether something is asked in PromQL: unless it is said to be something else."""
    if any(name in datasource for name in _PROMETHEUS):
        return True
    return not any(name in datasource for name in _OTHERS)
