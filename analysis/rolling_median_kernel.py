"""The rolling median's inner loop, compiled; importing it needs numba (the extra ``fast``).

A window's codes are kept as counts in bins. As it moves on, one code comes and one goes, and the median is at most a
few bins from where it was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.compiling import compiled


@compiled
def codes(
    values: NDArray[np.float64],
    edges: NDArray[np.float64],
    parts: NDArray[np.float64],
    steeps: NDArray[np.float64],
) -> NDArray[np.int16]:
    """The bin of each value, -1 where it isn't known.

    ``edges``: of three parts, each of ``parts`` even bins, of which a unit has ``steeps``.
    """
    low, first, last, _ = edges
    under, within, above = parts
    lower, middle, upper = steeps
    out = np.empty(len(values), np.int16)
    most = under + within + above - 1
    for place in range(len(values)):
        value = values[place]
        if np.isnan(value):
            out[place] = -1
        elif value < first:
            out[place] = min((value - low) * lower, under - 1)
        elif value <= last:
            out[place] = min(under + (value - first) * middle, under + within - 1)
        else:
            out[place] = min(under + within + (value - last) * upper, most)
    return out


@compiled
def medians(codes: NDArray[np.int16], centres: NDArray[np.float64], half: int) -> NDArray[np.float64]:
    """Of the codes within ``half`` of each place; NaN where none is known."""
    size = len(codes)
    counts = np.zeros(len(centres) + 1, np.int32)  # the last one is of what isn't known
    out = np.empty(size, np.float64)
    for place in range(min(half, size)):
        counts[codes[place]] += 1
    at = 0
    before = 0  # how many codes of the window are in bins below ``at``
    all_known = codes.min() >= 0
    place = 0
    while place < size:
        if place == half + 1 and place < size - half and all_known:
            at, before = _inner(codes, centres, half, (counts, out), (at, before))
            place = size - half
            continue
        if place + half < size:
            comes = codes[place + half]
            counts[comes] += 1
            before += 0 <= comes < at
        if place > half:
            goes = codes[place - half - 1]
            counts[goes] -= 1
            before -= 0 <= goes < at
        known = min(place + half, size - 1) - max(place - half, 0) + 1 - counts[-1]
        if known == 0:
            out[place] = np.nan
        else:
            at, before = _at_rank(counts, at, before, (known - 1) // 2)
            out[place] = centres[at]
            if known % 2 == 0 and before + counts[at] == known // 2:
                other = at + 1
                while counts[other] == 0:
                    other += 1
                out[place] = (centres[at] + centres[other]) / 2
        place += 1
    return out


@compiled
def _inner(
    codes: NDArray[np.int16],
    centres: NDArray[np.float64],
    half: int,
    into: tuple[NDArray[np.int32], NDArray[np.float64]],
    where: tuple[int, int],
) -> tuple[int, int]:
    """Medians of windows that lie within the series, where all is known: always the same rank, and never two."""
    counts, out = into
    at, before = where
    for place in range(half + 1, len(codes) - half):
        comes = codes[place + half]
        goes = codes[place - half - 1]
        if comes != goes:
            counts[comes] += 1
            counts[goes] -= 1
            before += (comes < at) - (goes < at)
            at, before = _at_rank(counts, at, before, half)
        out[place] = centres[at]
    return at, before


@compiled
def _at_rank(counts: NDArray[np.int32], at: int, before: int, rank: int) -> tuple[int, int]:
    """The bin that holds a rank, from the bin ``at`` with ``before`` codes below it, and the codes below that one."""
    while before > rank:
        at -= 1
        before -= counts[at]
    while before + counts[at] <= rank:
        before += counts[at]
        at += 1
    return at, before
