"""One group of a GPU's numbers: when it is read, what it showed last, and whether it can be had at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from exporter.sampler.ticks import next_tick

PERIODS_KEPT = 3
"""Values older than so many of their periods vanish; what is read several times a second counts as each second."""


class Group:
    """Read each ``seconds()``, the first time at ``due_at`` (CLOCK_MONOTONIC).

    ``holds`` is whether a value still tells something after its own second, should the next read fail.
    """

    def __init__(
        self,
        name: str,
        seconds: Callable[[], float],
        read: Callable[[], Any],
        due_at: float,
        *,
        holds: bool = True,
    ) -> None:
        self.name = name
        self.read = read
        self.due_at = due_at
        self.dropped = False
        """It can't be had from this driver: it is not asked for again."""
        self._seconds, self._holds = seconds, holds
        self._value: Any = None
        self._at = 0.0

    def put_off(self, now: float) -> None:
        """Be due at the next tick."""
        self.due_at = next_tick(self.due_at, self._seconds(), now)

    def take(self, value: Any, now: float) -> None:  # noqa: ANN401 - any group's tuple
        """Keep what was read; None is nothing."""
        self._value, self._at = value, now

    def drop(self) -> None:
        """Give it up."""
        self.dropped = True
        self._value = None

    def fresh(self, now: float) -> Any:  # noqa: ANN401 - any group's tuple
        """What it showed last, unless that is too old to say anything of ``now``."""
        longest = PERIODS_KEPT * max(1.0, self._seconds()) if self._holds else 0.0
        return self._value if now - self._at <= longest else None
