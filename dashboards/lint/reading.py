"""Board files into boards, and findings into problems with the place in the file where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from alerts.lint.problem import Problem, Severity
from alerts.lint.reading.document import Table, plain
from alerts.lint.reading.json_file import read_json
from alerts.lint.reading.source import Source, UnreadableError
from dashboards.lint import findings
from dashboards.lint.finding import Board


def problems(path: Path) -> list[Problem]:
    """What is wrong with the board in a file. Raises UnreadableError: it holds none."""
    source = Source.read(path)
    board = _board(source)
    panels = list(_panels(board))
    made = []
    for finding in findings(cast("Board", plain(board))):
        at = board.at if finding.place is None else panels[finding.place].at
        place = source.place(at)
        where = f'panel "{finding.panel}"' if finding.panel else ""
        line = source.line(place.line)
        made.append(
            Problem(
                source.name, place, finding.rule, Severity.WARNING, where, finding.problem, fix="", line=line
            )
        )
    return made


def _board(source: Source) -> Table:
    """As it is exported, or as Grafana's API wraps it. Raises UnreadableError."""
    document = read_json(source)
    board = (document.table("dashboard") or document) if isinstance(document, Table) else None
    start = source.place(document.at)
    if board is None:
        raise UnreadableError(start, "is no board of Grafana, which is an object with panels")
    if "panels" not in board.entries:
        if "rows" in board.entries:
            problem = (
                "is a board of before Grafana 5, with rows of panels: save it in a later one, and export that"
            )
        else:
            problem = "is no board of Grafana: it has no panels"
        raise UnreadableError(start, problem)
    return board


def _panels(board: Table) -> Iterator[Table]:
    """In the order of ``panels_of``."""
    for panel in board.tables("panels"):
        if panel.text("type") == "row":
            yield from panel.tables("panels")
        else:
            yield panel
