"""Fewer points that look the same: the lowest and the highest value of each column of pixels stay, and gaps do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.frame import Values


def kept(times: Values, values: Values, columns: int, start: float, end: float) -> NDArray[np.intp]:
    """Places of the points to draw, in order, where ``start`` to ``end`` is ``columns`` wide.

    ``times``, ``values``: shape (n,), times rising. The first, the last, the lowest and the highest known value of
    each column are among them, so extremes survive and lines join as before; of each stretch of NaN that is as long as
    a column one is, so that the line breaks there. All of them where there are no more than four to a column.
    """
    if len(times) <= 4 * columns:
        return np.arange(len(times))
    width = (end - start) / columns
    column = np.clip(np.floor((times - start) / width), 0, columns - 1).astype(np.int64)
    known = np.flatnonzero(~np.isnan(values))
    gaps = _gaps(times, values, width)
    if not len(known):
        return gaps
    begins = np.flatnonzero(np.diff(column[known], prepend=-1))
    ends = np.append(begins[1:], len(known)) - 1
    by_value = known[np.lexsort((values[known], column[known]))]
    chosen = (known[begins], known[ends], by_value[begins], by_value[ends], gaps)
    return np.unique(np.concatenate(chosen))


def _gaps(times: Values, values: Values, width: float) -> NDArray[np.intp]:
    """The first place of each stretch of NaN from the known value before to the one after that is that long."""
    edges = np.flatnonzero(np.diff(np.isnan(values).astype(np.int8), prepend=0, append=0))
    begins, ends = edges[::2], edges[1::2]
    last = len(times) - 1
    lengths = times[np.minimum(ends, last)] - times[np.maximum(begins - 1, 0)]
    return np.asarray(begins[lengths >= width], dtype=np.intp)
