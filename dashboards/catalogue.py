"""All boards that are shipped. A new one is a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from alerts.pack_settings import PackSettings
from dashboards import fleet, incident, sidecar, worker
from dashboards.board import Board
from dashboards.context import Context

BOARDS: Mapping[str, Callable[[Context], Board]] = {
    "fleet": fleet.board,
    "worker": worker.board,
    "incident": incident.board,
    "sidecar": sidecar.board,
}
"""By the name of their file, in the order in which one looks at them."""


def boards(settings: PackSettings) -> dict[str, Board]:
    """All of them for these settings, by name."""
    context = Context(settings)
    return {name: replace(make(context), runbooks=settings.runbooks) for name, make in BOARDS.items()}
