"""The median of a window around each instant: what a series was worth, whatever single values did.

Values are first rounded to 256 bins, so that a compiled loop can count them (the extra ``fast``); without numba
bottleneck takes the medians of the same rounded values. Both give the same numbers to the last bit. Nine in ten bins
share the range between the quantiles of 1 % and 99 %, the others what lies beyond: a median is off by half a bin at
most, 1 / 460 of that range, and 1 / 26 of what is beyond on its side.
"""

from __future__ import annotations

from collections.abc import Sequence

import bottleneck as bn
import numpy as np
from numpy.typing import NDArray

from analysis.compiling import has_numba

Values = NDArray[np.float64]
_BEYOND, _WITHIN = 13, 230
_PARTS = np.array([_BEYOND, _WITHIN, _BEYOND], dtype=np.float64)
_FURTHEST = np.finfo(np.float64).max / 4
_SAMPLE = 16_384
"""Where bins lie is found from about so many values: it only decides how finely values are told apart."""


def rolling_median(values: Values, window: int, *, compiled: bool | None = None) -> Values:
    """Of ``window`` instants around each (one more where it is even), of those that are known; NaN where none is.

    ``values``: shape (n,), or (n, k) and then column by column; NaN: not known. At both ends the window holds what
    there is of it. ``compiled``: None where numba is to be used if it is there. Raises ValueError: a window below 1,
    values with more than two axes, infinite ones; ImportError: ``compiled`` without numba.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim == 2:  # noqa: PLR2004 -- rows and columns
        columns = [rolling_median(column, window, compiled=compiled) for column in series.T]
        return np.column_stack(columns) if columns else series.copy()
    return rolling_medians(series, (window,), compiled=compiled)[0]


def rolling_medians(
    series: Values, windows: Sequence[int], *, compiled: bool | None = None
) -> tuple[Values, ...]:
    """The same with several windows of one series, shape (n,), which is rounded once; one of shape (n,) each."""
    if min(windows) < 1:
        raise ValueError(f"a window of {min(windows)}: it has to hold 1 at least")
    if series.ndim != 1:
        raise ValueError(f"values of shape {series.shape}: give one or two axes")
    edges = _edges(series)
    if edges is None:
        return tuple(np.full(len(series), np.nan) for _ in windows)
    centres = _centres(edges)
    halves = [min(window // 2, len(series)) for window in windows]
    if has_numba() if compiled is None else compiled:
        from analysis.rolling_median_kernel import codes, medians  # noqa: PLC0415 -- numba is an extra

        coded = codes(series, edges, _PARTS, _steeps(edges))
        return tuple(medians(coded, centres, half) for half in halves)
    rounded = np.append(centres, np.nan)[_codes(series, edges)]
    return tuple(_by_bottleneck(rounded, half) for half in halves)


def _by_bottleneck(rounded: Values, half: int) -> Values:
    gap = np.full(half, np.nan)
    padded = np.concatenate((gap, rounded, gap))
    return np.asarray(bn.move_median(padded, 2 * half + 1, min_count=1)[2 * half :], dtype=np.float64)


def _edges(series: Values) -> Values | None:
    """The least, the quantiles of 1 % and 99 %, the greatest; None where nothing is known."""
    sample = series[:: len(series) // _SAMPLE | 1]
    sample = sample[~np.isnan(sample)]
    low, high = (float(bn.nanmin(series)), float(bn.nanmax(series))) if len(series) else (np.nan, np.nan)
    if np.isnan(low):
        return None
    if not high / 2 - low / 2 < _FURTHEST:  # NaN too, of infinities
        raise ValueError(
            "infinite values have no median to be rounded to, nor have those near the largest number"
        )
    first, last = np.quantile(sample, (0.01, 0.99)) if len(sample) else (low, high)
    return np.array([low, first, last, high])


def _steeps(edges: Values) -> Values:
    """Bins a unit in each part; 0 where a part has no width, or one that no number of bins divides."""
    with np.errstate(divide="ignore", over="ignore"):
        steeps = _PARTS / np.diff(edges)
    return np.where(np.isfinite(steeps), steeps, 0.0)


def _centres(edges: Values) -> Values:
    """What a value in each bin is rounded to; where a part has no width, the value itself."""
    return np.concatenate(
        [
            left + (np.arange(count) + 0.5) * ((right - left) / count)
            for left, right, count in zip(edges[:-1], edges[1:], _PARTS.astype(int), strict=True)
        ]
    )


def _codes(series: Values, edges: Values) -> NDArray[np.int64]:
    """The bins as the compiled loop has them, in as many operations; -1 where a value isn't known."""
    low, first, last, _ = edges
    under, within, above = _steeps(edges)
    out = np.full(len(series), -1, dtype=np.int64)
    for begin, end, left, steep, inside in (
        (0, _BEYOND, low, under, series < first),
        (_BEYOND, _BEYOND + _WITHIN, first, within, (series >= first) & (series <= last)),
        (_BEYOND + _WITHIN, 2 * _BEYOND + _WITHIN, last, above, series > last),
    ):
        out[inside] = np.minimum(begin + (series[inside] - left) * steep, end - 1).astype(np.int64)
    return out
