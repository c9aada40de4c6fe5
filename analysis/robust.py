"""How unusual values are beside others of the same series: without units, and never by division by nearly nothing.

A mean and a standard deviation are moved by what they should find. Median and MAD are not, but where more than half
of the values are one and the same the MAD is 0: the spread then is that of the values between the quantiles of 1 % and
99 %, and at least a hundredth of the median, so that the next digit of a constant is no event.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAD_TO_SIGMA = 1.4826
"""A normal distribution's standard deviation over its MAD."""
RANGE_SIGMAS = 4.65
"""What of a normal distribution lies between its quantiles of 1 % and 99 %, in standard deviations."""
LEAST_OF_MEDIAN = 0.01


@dataclass(frozen=True, slots=True)
class Scale:
    """What is usual: the middle and the spread, both in the series' unit. A spread of 0: it was 0 throughout."""

    middle: float
    spread: float

    def z(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """How many spreads above (or, below 0, under) the middle each is; any change from all-zero is infinite."""
        away = values - self.middle
        if self.spread == 0.0:
            return np.where(away == 0.0, 0.0, np.copysign(np.inf, away) + 0.0 * away)
        return np.asarray(away / self.spread, dtype=np.float64)


def scale(values: NDArray[np.float64], least: float = 0.0) -> Scale | None:
    """Of the values that are known (NaN: not), with a spread of ``least`` at least; None where none is known."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    low, middle, high = np.quantile(known, (0.01, 0.5, 0.99))
    mad = float(np.median(np.abs(known - middle)))
    spread = max(
        MAD_TO_SIGMA * mad, float(high - low) / RANGE_SIGMAS, LEAST_OF_MEDIAN * abs(float(middle)), least
    )
    return Scale(float(middle), spread)
