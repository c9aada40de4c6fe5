"""What a rule finds, and where a board has its panels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Board = Mapping[str, Any]
Panel = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """``panel``: its title; empty where the whole board is meant."""

    rule: str
    panel: str
    problem: str

    def __str__(self) -> str:
        where = f'panel "{self.panel}": ' if self.panel else ""
        return f"{where}{self.problem} [{self.rule}]"


def panels_of(board: Board) -> Iterator[Panel]:
    """All panels but rows, those in collapsed rows too."""
    for panel in board.get("panels", []):
        if panel.get("type") == "row":
            yield from panel.get("panels", [])
        else:
            yield panel
