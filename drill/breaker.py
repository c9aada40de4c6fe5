"""A circuit breaker of one engine: closed, open, and one request to try again."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakerConfig:
    """Opens after ``failures`` in a row, for ``open_seconds``; then one request tries, and its end decides."""

    failures: int = 5
    open_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.failures < 1 or not self.open_seconds > 0:
            raise ValueError(
                f"a breaker that opens after {self.failures} failures for {self.open_seconds} s: take at least one, "
                "and a time above 0"
            )


class Breaker:
    """Of one engine. The time is told from outside."""

    def __init__(self, config: BreakerConfig) -> None:
        self.config = config
        self.opened = 0
        """How often it opened."""
        self._failures = 0
        self._until = -math.inf
        self._open = self._trying = False

    def lets_through(self, now: float) -> bool:
        """Whether a request may be sent."""
        return not self._open or (now >= self._until and not self._trying)

    @property
    def is_open(self) -> bool:
        """From too many failures in a row until one that tried came back well."""
        return self._open

    def sent(self) -> bool:
        """One was sent; whether it is the one that tries, which is to be told when it ends."""
        self._trying = self._open
        return self._trying

    def succeeded(self, *, trial: bool) -> None:
        """One came back well."""
        if trial or not self._open:
            self._failures = 0
            self._open = self._trying = False

    def failed(self, now: float, *, trial: bool) -> None:
        """One didn't."""
        self._failures += 1
        if trial or (not self._open and self._failures >= self.config.failures):
            self._open, self._trying = True, False
            self._until = now + self.config.open_seconds
            self.opened += 1

    def abandoned(self, *, trial: bool) -> None:
        """Its client left, which says nothing of the engine."""
        if trial:
            self._trying = False
