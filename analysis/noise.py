"""On which scale a series varies alike wherever it stands, and how small a change of it nobody would mind.

What lasts varies by factors: a time that is usually one to three seconds long is nine as easily as one of ten to thirty
milliseconds is ninety, and a scale of seconds calls the first a catastrophe and the second nothing. So durations are
looked at by their logarithm, but for those so short that a difference is all that can be said of them. How many there
are of what comes by itself varies by the root of it. All else varies evenly.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.robust import LEAST_OF_MEDIAN

Values = NDArray[np.float64]
SPREADS_OUT = 4.0
"""So many spreads beyond what was usual is outside: the least change is as many of the least spread."""
LEAST_FACTOR, MOST_FACTOR = 1.5, 5.0
"""A duration that grew by less hasn't changed: the bounds of the engines' buckets, between which quantiles are
interpolated, lie further apart. One that is five times what it ever was has, however much it varied."""


class Varies(enum.Enum):
    """What a series' noise grows with."""

    EVENLY = "with nothing"
    BY_ROOT = "with the root of its level"
    BY_FACTOR = "with its level"


@dataclass(frozen=True, slots=True)
class Noise:
    """How a series varies. ``least_change``: in its unit, what nobody would act upon.

    ``one``: of what varies by the root, what one of it is in the series' unit. ``is_sure``: it is known what is usual
    though little was seen. ``event_seconds``: for how long a single event shows; 0 where none does by itself.
    """

    varies: Varies
    least_change: float
    one: float = 0.0
    is_sure: bool = False
    event_seconds: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether it is a number of things, so that the next one is one more."""
        return self.varies is Varies.BY_ROOT and self.one == 1.0

    def evened(self, values: Values) -> Values:
        """Values on the scale on which they vary alike, shape (n,); in the order that they had.

        That of durations is one of factors above the least change, and one of differences below it.
        """
        if self.varies is not Varies.BY_FACTOR:
            return values
        return np.asarray(np.log1p(np.maximum(values, 0.0) / self.least_change))

    def told(self, value: float) -> float:
        """A value on that scale in the series' unit."""
        return self.least_change * math.expm1(value) if self.varies is Varies.BY_FACTOR else value

    def is_far(self, high: float, value: float) -> bool:
        """Whether a value is so far above ``high`` that no single event explains it, both on that scale."""
        if self.varies is Varies.BY_FACTOR:
            return value - high > math.log(MOST_FACTOR)
        many = MOST_FACTOR * SPREADS_OUT * math.sqrt(self.one * max(high, self.one))
        return self.one > 0 and value - high > many

    def around(self, usual: Values) -> Noise:
        """Of what is left of values on that scale once ``usual`` is taken off, shape (n,), NaN where not known."""
        level = float(np.nanmedian(usual)) if not np.isnan(usual).all() else 0.0
        least = SPREADS_OUT * self.spread(0.0, level, level, 1.0)
        return Noise(Varies.EVENLY, least, is_sure=self.is_sure, event_seconds=self.event_seconds)

    def spread(self, ranged: float, low: float, high: float, wider: float) -> float:
        """What a spread is where a range of ``ranged`` spreads, from ``low`` to ``high``, was seen; all on that scale.

        ``wider``: by how much more than what was seen has to be reckoned with.
        """
        if self.varies is Varies.BY_FACTOR:
            noticed = math.log1p(math.exp(-high))
            least = max(math.log(LEAST_FACTOR), noticed) / SPREADS_OUT
            return min(max(ranged * wider, least), math.log(MOST_FACTOR) / SPREADS_OUT)
        highest = max(abs(low), abs(high))
        floor = max(self.least_change / SPREADS_OUT, LEAST_OF_MEDIAN * highest)
        by_chance = math.sqrt(self.one * highest) if self.varies is Varies.BY_ROOT else 0.0
        return max(ranged * wider, floor if self.is_sure else floor * wider, by_chance)
