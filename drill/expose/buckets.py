"""Histograms as an engine's metrics code keeps them."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from exporter.sample import Histogram


class Buckets:
    """Observations counted in buckets up to and including each of ``bounds``, which rise and end infinite."""

    __slots__ = ("bounds", "count", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * len(bounds)
        self.count = 0
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """So many observations of the same value."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.count += times
        self.total += value * times

    def cumulative(self) -> list[int]:
        """Observations at or below each bound."""
        return list(accumulate(self.counts))

    def histogram(self) -> Histogram:
        """As samples hold it."""
        return Histogram(self.bounds, tuple(map(float, accumulate(self.counts))), self.total)
