"""What the KV events of one data-parallel rank add up to, at one instant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KvEventsSample:
    """One rank's events at ``at`` (seconds since the epoch), while its publisher is connected.

    All ``*_total`` are the sidecar's own counts, from 0 at its start, and never fall. ``stores_total`` and
    ``removals_total`` are blocks by medium (``gpu``, ``cpu``, ``storage``, ``other``); a medium that no event
    has named yet is not among them. ``restores_total`` are blocks stored on the GPU that had been removed from
    it at most a minute before. ``lost_batches_total`` are batches that were published and never came, replay
    included: how many events they held nobody knows. ``unknown_events_total`` are events of a type or a form
    that can't be read, ``broken_batches_total`` whole messages of that kind.
    """

    at: float
    engine: str
    rank: str
    stores_total: tuple[tuple[str, int], ...] = ()
    removals_total: tuple[tuple[str, int], ...] = ()
    restores_total: int = 0
    clears_total: int = 0
    batches_total: int = 0
    lost_batches_total: int = 0
    unknown_events_total: int = 0
    broken_batches_total: int = 0

    @property
    def read_seconds(self) -> float:
        """0: the counts are of ``at`` itself."""
        return 0.0

    def restarted_since(self, earlier: object) -> bool | None:
        """Never: the counts are the sidecar's own, and go on when an engine starts anew."""
        return False if isinstance(earlier, KvEventsSample) else None

    def stores_on(self, medium: str) -> float:
        """Blocks stored there so far."""
        return float(dict(self.stores_total).get(medium, 0))

    def removals_from(self, medium: str) -> float:
        """Blocks removed from there so far."""
        return float(dict(self.removals_total).get(medium, 0))
