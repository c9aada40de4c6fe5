"""How fast the fast reads may go: they stretch while the sampler takes more than its share."""

from __future__ import annotations

CPU_SHARE = 0.05
"""Of one core, for all that the sampler does."""
DRIVER_SHARE = 0.10
"""Of the time, inside calls of the library, all threads together: others wait there for the same locks."""
PATIENCE_SECONDS = 5
"""How long it may take more before reads stretch."""
CALM_SECONDS = 30
"""How long it must take less than half before they shrink again."""
MOST = 64
SLOWEST_SECONDS = 1.0
"""The slowest a fast read may become: then the read of each second serves."""


class Pace:
    """By which factor the time between fast reads is stretched. Told once a second by one thread."""

    def __init__(self) -> None:
        self.factor = 1
        self._over = 0
        self._calm = 0

    def told(self, cpu_share: float, driver_share: float) -> None:
        """Say what the last second took: seconds of CPU and inside the library, a second."""
        load = max(cpu_share / CPU_SHARE, driver_share / DRIVER_SHARE)
        self._over = self._over + 1 if load > 1 else 0
        # Half the pace may cost twice as much: below half of the share that still fits.
        self._calm = self._calm + 1 if load < 1 / 2 else 0
        if self._over >= PATIENCE_SECONDS and self.factor < MOST:
            self.factor *= 2
            self._over = 0
        elif self._calm >= CALM_SECONDS and self.factor > 1:
            self.factor //= 2
            self._calm = 0

    def stretched(self, seconds: float) -> float:
        """The time between fast reads where ``seconds`` are wanted."""
        return min(SLOWEST_SECONDS, seconds * self.factor)
