"""The Protocol every source keeps, and what it tells of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from exporter.sample import EngineSample

STALE_AFTER_SECONDS = 15.0
"""Real engines stall their own /metrics for up to 14 s under overload; older numbers vanish."""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source at one instant.

    ``answering`` is whether the last read that came to an end succeeded; ``last_at`` the start of
    the newest read that did (seconds since the epoch), None before the first; ``read_seconds`` how
    long that read took; ``errors`` the failures since the sidecar started, by reason;
    ``last_error`` the newest failure in one line, empty while all is well.
    """

    name: str
    kind: str
    answering: bool
    last_at: float | None
    read_seconds: float | None
    errors: tuple[tuple[str, int], ...] = ()
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one source has to show at one cycle: its status and its newest sample, if any."""

    status: SourceStatus
    engine: EngineSample | None = None


class Source(Protocol):
    """Reads one thing on its own schedule and keeps the newest result. Nobody waits for it."""

    @property
    def name(self) -> str:
        """Unique among the sidecar's sources."""

    async def run(self) -> None:
        """Reads until cancelled. One failed read never ends it."""

    async def read_once(self) -> None:
        """One read, for ``--once``: afterwards ``observe`` shows the result or the failure."""

    def observe(self) -> Observation:
        """The newest result, without waiting."""
