"""What the cycle hands to those who ask: one newest publication, replaced as a whole."""

from __future__ import annotations

from exporter.demand import Demand
from exporter.observation import SourceStatus
from exporter.render import Format, Rendering
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

    __slots__ = ("_demand", "newest")

    def __init__(self) -> None:
        self._demand: Demand[tuple[Format, bool]] = Demand()
        self.newest = Publication(Snapshot(at=0.0, values=(), ready=False), ())

    def publish(self, snapshot: Snapshot, statuses: tuple[SourceStatus, ...]) -> None:
        """Replace the newest publication."""
        self.newest = Publication(snapshot, statuses)

    def scraped(self, wanted: Format, now: float, *, zipped: bool) -> bytes:
        """The newest exposition, as somebody asks for it at ``now`` (a clock that doesn't jump)."""
        self._demand.note((wanted, zipped), now)
        return self.newest.rendering.body(wanted, zipped=zipped)

    def prepare(self, now: float, seconds: float) -> None:
        """Make the answers that will be asked for in the next ``seconds``: then a scrape waits for none.

        What nobody scrapes is not rendered.
        """
        for wanted, zipped in self._demand.expected(now, now + seconds):
            self.newest.rendering.body(wanted, zipped=zipped)
