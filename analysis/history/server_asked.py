"""What one reading of a server is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from analysis.history.server_cache import Cache
from analysis.history.server_settings import ServerSettings

SETTLED_MILLISECONDS = 600_000
"""What is longer ago than this is taken not to change any more: remote writes and uploads have arrived."""

Progress = Callable[[float, int], None]
"""Told the share that is done, 0 to 1, and how many samples were read."""


@dataclass(frozen=True, slots=True)
class Asked:
    """As ``read_server`` was called. ``between``: milliseconds; later than the first, up to the second."""

    server: ServerSettings
    between: tuple[int, int]
    step_seconds: float | None
    names: tuple[str, ...] | None
    matchers: tuple[str, ...]
    progress: Progress | None
    cache: Cache | None
    deadline_seconds: float
    most_series: int
    most_values: int
    now: float

    @property
    def settled(self) -> int:
        """Pieces that end up to this time in milliseconds don't change any more."""
        return round(self.now * 1000) - SETTLED_MILLISECONDS

    def of(self, first: str) -> str:
        """A selector that begins with one matcher of names and goes on with those that were given."""
        return "{" + ",".join((first, *self.matchers)) + "}"


def day(seconds: float) -> str:
    """An instant for people, in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}Z"
