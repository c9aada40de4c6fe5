"""Two methods of others, made from their descriptions in TSB-AD, so that our measure can be held to its figures.

POLY (Li et al., "Deep anomaly detection in time series by polynomial approximation", as TSB-AD runs it): blocks of a
period, a polynomial of degree 4 over ten periods around each without it, the root mean square of what is left.
SR (Ren et al., "Time-series anomaly detection service at Microsoft", KDD 2019): what is salient in a log spectrum.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from analysis.scores import period

Values = NDArray[np.float64]
_DEGREE = 4
_PERIODS, _LEAST_AROUND = 10, 100
_FIRST_SHARE, _FIRST_MOST = 0.1, 500
_SPECTRUM_WINDOW = 100


def poly(values: Values) -> Values:
    """POLY's score of each instant, shape (n,): 0 in the first tenth, which it takes for its training."""
    size, block = len(values), period(values)
    scaled = (values - values.min()) / np.ptp(values)
    around = min(max(_PERIODS * block, _LEAST_AROUND), size)
    half = around // 2
    first = -(-min(_FIRST_MOST, int(_FIRST_SHARE * size)) // block)
    result = np.zeros(size)
    for begin in range(first * block, size, block):
        end = min(begin + block, size)
        if begin + half < size and begin > half:
            low, high = begin - half, begin + half
        elif begin + half >= size:
            low, high = size - around, size
        else:
            low, high = 0, around
        places = np.concatenate((np.arange(low, begin), np.arange(begin + block, high)))
        curve = Polynomial.fit(places, scaled[places], _DEGREE)
        # it looks at a whole block's curve from the block's first instant to the next block's
        whole = end - begin == block
        at = np.linspace(begin, end, block) if whole else np.arange(begin, end)
        result[begin:end] = np.sqrt(np.mean((scaled[begin:end] - curve(at)) ** 2))
    return result


def spectral_residual(values: Values) -> Values:
    """SR's saliency of each instant, shape (n,)."""
    scaled = (values - values.min()) / np.ptp(values)
    spectrum = np.fft.fft(scaled)
    with np.errstate(divide="ignore"):
        level = np.log(np.abs(spectrum))
    half = level[1 : 1 + len(level) // 2]
    left = (_SPECTRUM_WINDOW - 1) // 2
    padded = np.concatenate(
        (np.full(left, scaled[0]), half, np.full(_SPECTRUM_WINDOW - 1 - left, scaled[-1]))
    )
    mean = np.convolve(padded, np.full(_SPECTRUM_WINDOW, 1 / _SPECTRUM_WINDOW), "valid")
    mirrored = mean[:-1] if len(level) % 2 == 0 else mean
    average = np.concatenate((level[:1], mean, mirrored[::-1]))
    return np.asarray(np.abs(np.fft.ifft(np.exp(level - average + 1j * np.angle(spectrum)))))
