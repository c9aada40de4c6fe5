"""How long requests took, as a gateway counts them: in Envoy's buckets, which it merges each 5 s."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import NamedTuple

MERGED_EACH_SECONDS = 5.0
BOUNDS_MS = (
    *(0.5, 1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0, 30_000.0),
    *(60_000.0, 300_000.0, 600_000.0, 1_800_000.0, 3_600_000.0),
    math.inf,
)
"""Of every histogram of times on an Envoy's page (tests/fixtures/envoy)."""


class TimesTold(NamedTuple):
    """So many requests took at most each of ``BOUNDS_MS``, and all of them together so long."""

    at_most: tuple[int, ...] = (0,) * len(BOUNDS_MS)
    total_ms: float = 0.0


class Times:
    """Running counts of one kind of request. The time is told from outside, and never falls."""

    def __init__(self) -> None:
        self._counts = [0] * len(BOUNDS_MS)
        self._total_ms = 0.0
        self._merged = TimesTold()
        self._due = MERGED_EACH_SECONDS

    def observe(self, took_seconds: float, now: float) -> None:
        """One more, at ``now``."""
        self._merge(now)
        took = took_seconds * 1000
        self._counts[bisect_left(BOUNDS_MS, took)] += 1
        self._total_ms += took

    def told(self, now: float) -> TimesTold:
        """As of the last merge."""
        self._merge(now)
        return self._merged

    def _merge(self, now: float) -> None:
        if now >= self._due:
            self._merged = TimesTold(tuple(accumulate(self._counts)), self._total_ms)
            self._due = (math.floor(now / MERGED_EACH_SECONDS) + 1) * MERGED_EACH_SECONDS
