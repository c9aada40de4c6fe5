"""The Protocol every source keeps."""

from __future__ import annotations

from typing import Protocol

from exporter.observation import Observation


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
