"""How long prompts and answers are: distributions of whole numbers of tokens, at least 1."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Lengths(Hashable, Protocol):
    """Tells a length when asked."""

    def draw(self, chance: np.random.Generator) -> int:
        """One length."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same."""

    tokens: int

    def __post_init__(self) -> None:
        _check(self.tokens, self.tokens)

    def draw(self, chance: np.random.Generator) -> int:  # noqa: ARG002 -- nothing is left to it
        """See Lengths."""
        return self.tokens


@dataclass(frozen=True, slots=True)
class Uniform:
    """From ``least`` to ``most``, each as likely."""

    least: int
    most: int

    def __post_init__(self) -> None:
        _check(self.least, self.most)

    def draw(self, chance: np.random.Generator) -> int:
        """See Lengths."""
        return int(chance.integers(self.least, self.most, endpoint=True))


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Half are longer than ``median``; ``sigma`` is the logarithm's. Drawn again outside ``least`` .. ``most``."""

    median: float
    sigma: float
    least: int = 1
    most: int = 1 << 20

    def __post_init__(self) -> None:
        _check(self.least, self.most)
        if not self.least <= self.median <= self.most or not self.sigma >= 0:
            raise ValueError(
                f"a log-normal of median {self.median} and sigma {self.sigma} within {self.least} .. {self.most}: the "
                "median has to lie within, sigma at 0 or above"
            )

    def draw(self, chance: np.random.Generator) -> int:
        """See Lengths."""
        while True:
            length = round(math.exp(chance.normal(math.log(self.median), self.sigma)))
            if self.least <= length <= self.most:
                return length


@dataclass(frozen=True)
class Weighted:
    """One of ``values``, as likely as its weight."""

    values: Sequence[int]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        if not self.values or len(self.values) != len(self.weights):
            raise ValueError(
                f"{len(self.values)} lengths with {len(self.weights)} weights: one weight each, at least one"
            )
        _check(min(self.values), max(self.values))
        total = math.fsum(self.weights)
        if not (0 < total < math.inf) or min(self.weights) < 0:
            raise ValueError(f"weights of lengths add up to {total}: none below 0, and not all 0")

    def draw(self, chance: np.random.Generator) -> int:
        """See Lengths."""
        sums = self._sums
        place = int(np.searchsorted(sums, chance.random() * sums[-1], side="right"))
        return self.values[min(place, len(self.values) - 1)]

    def mean(self, power: int = 1) -> float:
        """Of a length, or of a power of it."""
        weights = np.asarray(self.weights, dtype=np.float64)
        return float(np.dot(np.asarray(self.values, dtype=np.float64) ** power, weights) / weights.sum())

    @cached_property
    def _sums(self) -> NDArray[np.float64]:
        return np.cumsum(np.asarray(self.weights, dtype=np.float64))


def _check(least: int, most: int) -> None:
    if not 1 <= least <= most:
        raise ValueError(f"lengths from {least} to {most}: at least 1, and in this order")


INCIDENT_PROMPTS = LogNormal(median=24_000, sigma=0.7, least=8_000, most=64_000)
"""Documents of 8k to 64k tokens, as in the incident, whose page tells the range; the middle is assumed."""
