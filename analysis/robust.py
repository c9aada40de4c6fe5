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
    return scale_of_sorted(np.sort(known), least) if len(known) else None


def scale_of_sorted(known: NDArray[np.float64], least: float = 0.0) -> Scale:
    """The same of values that are all known and in order; at least one."""
    low, middle, high = (quantile_of_sorted(known, share) for share in (0.01, 0.5, 0.99))
    mad = quantile_of_sorted(np.sort(np.abs(known - middle)), 0.5)
    spread = max(MAD_TO_SIGMA * mad, (high - low) / RANGE_SIGMAS, LEAST_OF_MEDIAN * abs(middle), least)
    return Scale(middle, spread)


def quantile_of_sorted(known: NDArray[np.float64], share: float) -> float:
    """Between the two values that it lies between, as numpy has it, without numpy's looking for them."""
    place = share * (len(known) - 1)
    below = int(place)
    low, high = float(known[below]), float(known[min(below + 1, len(known) - 1)])
    return low + (high - low) * (place - below) if low != high else low


def quantile_of_columns(values: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Of each column of ``values``, shape (m, n), at least one row, among those that are known; NaN where none is.

    As ``numpy.nanquantile`` has it, which looks at one column after the other.
    """
    ordered = np.sort(values, axis=0)  # what isn't known comes last
    last = np.maximum(np.count_nonzero(~np.isnan(values), axis=0) - 1, 0)
    place = share * last
    below = place.astype(np.intp)
    low, high = (
        np.take_along_axis(ordered, each[None], axis=0)[0] for each in (below, np.minimum(below + 1, last))
    )
    return np.asarray(np.where(low == high, low, low + (high - low) * (place - below)), dtype=np.float64)


def median(values: NDArray[np.float64]) -> float:
    """Of values that are all known; at least one."""
    return quantile_of_sorted(np.sort(values), 0.5)
