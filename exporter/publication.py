"""What the cycle hands to those who ask: one newest publication, replaced as a whole."""

from __future__ import annotations

from exporter.observation import SourceStatus
from exporter.render import Rendering
from exporter.snapshot import Snapshot


class Publication:
    """One snapshot with the status of each source, and all that was rendered of it so far."""

    __slots__ = ("page", "rendering", "snapshot", "statuses")

    def __init__(self, snapshot: Snapshot, statuses: tuple[SourceStatus, ...]) -> None:
        self.snapshot = snapshot
        self.statuses = statuses
        self.rendering = Rendering(snapshot)
        self.page: bytes | None = None
        """The landing page, once somebody has asked for it."""


class Board:
    """Holds the newest publication. Everything runs in one loop, so an attribute is all it takes."""

    __slots__ = ("newest",)

    def __init__(self) -> None:
        self.newest = Publication(Snapshot(at=0.0, values=(), ready=False), ())
