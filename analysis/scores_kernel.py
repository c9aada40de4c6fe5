"""What scores are made of, in one pass each, compiled; importing it needs numba (the extra ``fast``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.compiling import compiled


@compiled
def smoothed(away: NDArray[np.float64], block: int) -> NDArray[np.float64]:
    """The root of the mean square over a triangle two blocks wide: a mean over a block, taken twice.

    Beyond its ends a series is taken to go on with its last value.
    """
    size = len(away)
    last = size - 1
    before = block // 2
    after = block - before  # a block goes from ``before`` before an instant to just before ``after`` after it
    once = np.empty(size, np.float64)
    total = 0.0
    for place in range(-before, after):
        value = away[min(max(place, 0), last)]
        total += value * value
    for place in range(size):
        once[place] = total / block
        comes = away[min(place + after, last)]
        goes = away[max(place - before, 0)]
        total += comes * comes - goes * goes
    out = np.empty(size, np.float64)
    total = 0.0
    for place in range(-before, after):
        total += once[min(max(place, 0), last)]
    for place in range(size):
        out[place] = np.sqrt(max(total / block, 0.0))
        total += once[min(place + after, last)] - once[max(place - before, 0)]
    return out


@compiled
def add_squashed(
    total: NDArray[np.float64], term: NDArray[np.float64], middle: float, slope: float, weight: float
) -> None:
    """Add to ``total`` the size of each term, 0 up to ``middle`` and then by ``slope``, at most 5, times ``weight``."""
    for place in range(len(total)):
        total[place] += weight * min(max((abs(term[place]) - middle) * slope, 0.0), 5.0)
