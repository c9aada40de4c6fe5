"""Rules for a board as a whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

from dashboards.lint.finding import Board, panels_of, table, tables

_ON_TIME_RANGE_CHANGE = 2
_COLUMNS, _TALLEST = 24, 1000
"""Of Grafana's grid; nothing is meant to be taller."""
_OLDEST_SCHEMA = 39
"""Of Grafana 10.4: older ones are migrated on load, Angular's panels and all."""


def template_datasource(board: Board) -> Iterator[str]:
    """One variable picks the data source, so that the board works in any Grafana."""
    names = [str(each.get("name")) for each in _variables(board) if each.get("type") == "datasource"]
    if names != ["datasource"]:
        yield f"one variable named datasource is to pick the data source: there are {', '.join(names) or 'none'}"


def template_on_time_change_reload(board: Board) -> Iterator[str]:
    """What is to be picked is what there was at the time that is looked at."""
    for each in _variables(board):
        if each.get("type") == "query" and each.get("refresh") != _ON_TIME_RANGE_CHANGE:
            yield f"variable {each.get('name')} isn't filled anew when the time changes (refresh 2)"


def uneditable(board: Board) -> Iterator[str]:
    """It is generated: what is edited in Grafana is lost."""
    if board.get("editable", True):
        yield "editable isn't false"


def stable_identity(board: Board) -> Iterator[str]:
    """Links find it by its uid, whatever its id there."""
    if not board.get("uid"):
        yield "no uid: links to it break with each import"
    if "id" in board:
        yield "an id of another Grafana: leave it out"


def no_inputs(board: Board) -> Iterator[str]:
    """Provisioning fills no inputs in."""
    if "__inputs" in board:
        yield "__inputs aren't filled in by provisioning: take a variable"


def modern_schema(board: Board) -> Iterator[str]:
    """Older schemas are rewritten on load."""
    version = board.get("schemaVersion")
    if not isinstance(version, int) or version < _OLDEST_SCHEMA:
        yield f"schemaVersion {version!r} is below {_OLDEST_SCHEMA}"


def unique_ids(board: Board) -> Iterator[str]:
    """Two panels of one id are one to Grafana."""
    ids = [panel.get("id") for panel in panels_of(board)]
    for twice in sorted({str(each) for each in ids if ids.count(each) > 1}):
        yield f"several panels have the id {twice}"


def panels_apart(board: Board) -> Iterator[str]:
    """Panels that lie over one another are moved about by Grafana."""
    taken: dict[tuple[int, int], tuple[int, str]] = {}
    for number, panel in enumerate(tables(board, "panels")):
        place = [table(panel, "gridPos").get(key) for key in "xywh"]
        left, top, wide, high = (each if isinstance(each, int) else 0 for each in place)
        title = str(panel.get("title"))
        if left < 0 or left + wide > _COLUMNS or high > _TALLEST:
            yield f'"{title}" reaches beyond the edge: {wide} x {high} at {left}, {top}'
            return
        for spot in itertools.product(range(left, left + wide), range(top, top + high)):
            other, name = taken.setdefault(spot, (number, title))
            if other != number:
                yield f'"{title}" lies over "{name}" at {spot[0]}, {spot[1]}'
                return


def _variables(board: Board) -> list[Mapping[str, object]]:
    return tables(table(board, "templating"), "list")


BOARD_RULES: Mapping[str, Callable[[Board], Iterator[str]]] = {
    "template-datasource-rule": template_datasource,
    "template-on-time-change-reload-rule": template_on_time_change_reload,
    "uneditable-dashboard": uneditable,
    "stable-identity": stable_identity,
    "no-inputs": no_inputs,
    "modern-schema": modern_schema,
    "unique-panel-ids": unique_ids,
    "panels-apart": panels_apart,
}
"""By name, as dashboard-linter has it where it has it."""
