"""How many requests come a second, over time, and when each of them does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

_EVEN = 1e-3
"""Gaps that vary by less are taken as even."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests a second by time, along lines between ``points`` (seconds, rate), none before and after.

    Two points at one time are a step. Raises ValueError: fewer than two points, times that fall, rates below 0.
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if len(self.points) < 2:  # noqa: PLR2004 -- a line has two ends
            raise ValueError(f"a rate of {len(self.points)} points: give at least its beginning and its end")
        before = 0.0
        for seconds, rate in self.points:
            if not before <= seconds < math.inf or not 0 <= rate < math.inf:
                raise ValueError(
                    f"a rate of {rate} requests/s at {seconds} s, after {before} s: times rise from 0 on, rates are "
                    "0 or above"
                )
            before = seconds

    @classmethod
    def constant(cls, rate: float, until: float, start: float = 0.0) -> Self:
        """The same all the time."""
        return cls(((start, rate), (until, rate)))

    @classmethod
    def steps(cls, rates: Iterable[tuple[float, float]], until: float) -> Self:
        """Each (seconds, rate) from its time on until the next one's."""
        row = [*rates, (until, 0.0)]
        points = [
            point for (start, rate), (end, _) in pairwise(row) for point in ((start, rate), (end, rate))
        ]
        return cls(tuple(points))

    @classmethod
    def windows(cls, seconds: float, rates: Sequence[float]) -> Self:
        """Windows of so many seconds, one after the other."""
        return cls.steps([(index * seconds, rate) for index, rate in enumerate(rates)], len(rates) * seconds)

    @classmethod
    def ramped(cls, rate: float, start: float, until: float, ramp_seconds: float = 0.0) -> Self:
        """From nothing at ``start`` to ``rate`` within ``ramp_seconds``, then the same; 0 is a step."""
        return cls(((start, rate if ramp_seconds <= 0 else 0.0), (start + ramp_seconds, rate), (until, rate)))

    def at(self, seconds: float) -> float:
        """The rate then; at a step, the one after it."""
        for (start, low), (end, high) in zip(
            reversed(self.points[:-1]), reversed(self.points[1:]), strict=True
        ):
            if start <= seconds < end:
                return low + (high - low) * (seconds - start) / (end - start)
        return 0.0

    def times(self, chance: np.random.Generator, variation: float = 1.0) -> Iterator[float]:
        """When requests come. ``variation``: standard deviation over mean of the gaps, as the rate stretches them.

        1: a Poisson process; above: bursts; 0: evenly. Gaps are gamma-distributed. Raises ValueError.
        """
        if not 0 <= variation < math.inf:
            raise ValueError(f"gaps that vary by {variation}: take a number from 0 on")
        shape = variation**-2 if variation > _EVEN else math.inf
        due = passed = 0.0
        drawn = False
        for (start, low), (end, high) in pairwise(self.points):
            area = (low + high) / 2 * (end - start)
            while True:
                if not drawn:
                    due += 1.0 if math.isinf(shape) else chance.gamma(shape) / shape
                drawn = due > passed + area
                if drawn:
                    break
                yield start + _where(due - passed, low, (high - low) / (end - start) if end > start else 0.0)
            passed += area


def _where(area: float, low: float, slope: float) -> float:
    """How far along a line that begins at ``low`` so much lies under it."""
    if slope == 0.0:
        return area / low
    return 2.0 * area / (low + math.sqrt(max(0.0, low * low + 2.0 * slope * area)))
