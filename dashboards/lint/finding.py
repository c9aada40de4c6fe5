"""What a rule finds, and where a board has its panels.

Boards of others hold anything: what isn't of the kind that Grafana writes there counts as not being there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Board = Mapping[str, Any]
Panel = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """``panel``: its title, and ``place``: which of the board's it is; empty and None where the board is meant."""

    rule: str
    panel: str
    problem: str
    place: int | None = None


def table(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The table at ``key``; an empty one where there is none."""
    found = of.get(key)
    return found if isinstance(found, Mapping) else {}


def tables(of: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Those items of the list at ``key`` that are tables."""
    found = of.get(key)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def panels_of(board: Board) -> Iterator[Panel]:
    """All panels but rows, those in collapsed rows too."""
    for panel in tables(board, "panels"):
        if panel.get("type") == "row":
            yield from tables(panel, "panels")
        else:
            yield panel
