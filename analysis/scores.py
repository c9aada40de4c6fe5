"""How unusual each instant of a series is beside the others: a rank within one series, for search and for benchmarks.

Three things are looked at: how far a value is from medians of several windows around it, the same over a period of the
series, and how far the series is over a period from the curve that its surroundings draw (``analysis.polynomial``).
Single values show in the first, stretches in the others. Each is taken relative to its own usual size over the whole
series, never over a window: a spread of the surroundings makes usual what it should find. The setting is one for all
series; how it was found stands in docs/evaluation-detection.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.ndimage import uniform_filter1d

from analysis.compiling import has_numba
from analysis.polynomial import distance
from analysis.rolling_median import rolling_medians

Values = NDArray[np.float64]
WINDOWS = (101, 301)
"""Of the medians, in instants; what is left of the first one is smoothed over a period too."""
_RAW_WEIGHT = 1 / 4
"""Of each single value's distance, where a smoothed one counts 1."""
MOST = 5.0
_PERIOD_INSTANTS = 20_000
_NO_PERIOD = 125
_LAGS = range(6, 304)
_LEAST_BLOCK = 8
_SAMPLE = 8_192
_ARRAYS = 8


def scores(values: Values) -> Values:
    """Of a series of shape (n,), the same shape: 0 for what is usual, up to 12.5; NaN where ``values`` is.

    With numba and without it they are the same but for the last digits. Raises ValueError: more than one axis,
    infinite values.
    """
    known = ~np.isnan(values)
    if not known.any():
        return np.full(values.shape, np.nan)
    whole_known = bool(known.all())
    _keep_memory(len(values))
    medians = rolling_medians(values, WINDOWS)
    # a gap has no say in what is smoothed over it: there the series is taken to be what is around it
    whole = values if whole_known else _filled(values, known, medians[-1])
    block = max(_LEAST_BLOCK, period(whole))
    total = np.zeros(len(values))
    _add(total, _smoothed(distance(whole, block), block), 1.0)
    for window, median in zip(WINDOWS, medians, strict=True):
        away = np.subtract(whole, median, out=median)
        if not whole_known:
            np.nan_to_num(away, copy=False)
        if window == WINDOWS[0]:
            _add(total, _smoothed(away, block), 1.0)
        _add(total, away, _RAW_WEIGHT)
    if not whole_known:
        total[~known] = np.nan
    return total


def period(values: Values) -> int:
    """The lag at which a series is most like itself, in instants: the highest peak of its autocorrelation.

    Of the first 20,000 instants, among lags from 6 to 303, as TSB-AD has it; 125 where there is no such peak, or it is
    elsewhere. ``values``: shape (n,), all known.
    """
    first = values[:_PERIOD_INSTANTS] - values[:_PERIOD_INSTANTS].mean()
    size = next_fast_len(len(first) + _LAGS.stop + 100, real=True)
    transformed = rfft(first, size)
    likeness = irfft(transformed.real**2 + transformed.imag**2, size)[3 : min(401, len(first))]
    inner = likeness[1:-1]
    peaks = np.flatnonzero((inner > likeness[:-2]) & (inner > likeness[2:])) + 1
    if not len(peaks):
        return _NO_PERIOD
    lag = int(peaks[np.argmax(likeness[peaks])]) + 3
    return lag if lag in _LAGS else _NO_PERIOD


def _keep_memory(instants: int) -> None:
    """Free one block as large as all arrays of a series together.

    glibc gives what was freed back to the system and takes it anew, page by page, up to twice the largest block that it
    has seen freed (mallopt(3), M_MMAP_THRESHOLD): without this a third of all time goes there.
    """
    np.empty(_ARRAYS * instants)


def _filled(values: Values, known: NDArray[np.bool_], median: Values) -> Values:
    """The median where a value isn't known, and in longer gaps a line from one end to the other."""
    filled = np.where(known, values, median)
    places = np.flatnonzero(~np.isnan(filled))
    return np.interp(np.arange(len(values)), places, filled[places])


def _smoothed(away: Values, block: int) -> Values:
    """The root of the mean square over a triangle two blocks wide."""
    if has_numba():
        from analysis.scores_kernel import smoothed  # noqa: PLC0415 -- numba is an extra

        return smoothed(away, block)
    once = uniform_filter1d(away * away, block, mode="nearest")
    return np.sqrt(np.maximum(uniform_filter1d(once, block, mode="nearest"), 0.0))


def _add(total: Values, term: Values, weight: float) -> None:
    """Add each term's size: 0 at its median, 1 at its quantile of 99 %, at most 5, so that none drowns the others."""
    sample = np.abs(term[:: len(term) // _SAMPLE | 1])
    places = [int(share * (len(sample) - 1)) for share in (0.5, 0.99)]
    middle, high = np.partition(sample, places)[places]
    # where no more than one in a hundred differs, whoever does is furthest out
    slope = 1 / (high - middle) if high > middle else np.finfo(np.float64).max
    if has_numba():
        from analysis.scores_kernel import add_squashed  # noqa: PLC0415 -- numba is an extra

        add_squashed(total, term, float(middle), float(slope), weight)
    else:
        with np.errstate(over="ignore"):
            total += weight * np.clip((np.abs(term) - middle) * slope, 0.0, MOST)
