"""How far a series is from the curve that its surroundings draw through it.

Time is cut into blocks; a polynomial is fitted to the five blocks before each one and the four after it, and not to
the block itself: what happens in a block can't hide by bending its own curve. The idea is POLY's of TSB-AD (see
docs/evaluation-detection.md). All blocks have the same shape, so a fit is a product with a fixed matrix of their
moments, which is as fast as reading the series a few times.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

Values = NDArray[np.float64]
_DEGREE = 4
_BEFORE, _AFTER = 5, 4
_BLOCKS = _BEFORE + 1 + _AFTER
_ONE_THREAD = 200_000


def distance(values: Values, block: int) -> Values:
    """Value less curve at each instant; ``values`` of shape (n,), all known, cut into blocks of ``block`` instants.

    Near an end the nine blocks are those nearest to it. Where a series is too short for that, its mean is the curve.
    Raises ValueError: a block of fewer instants than a curve needs.
    """
    if block <= _DEGREE:
        raise ValueError(f"blocks of {block} instants: a curve needs {_DEGREE + 1}")
    count = len(values) // block
    if count < _BLOCKS:
        return values - values.mean() if len(values) else values.copy()
    rest = len(values) - count * block
    level = values.mean()
    away = _of_blocks((values[: count * block] - level).reshape(count, block))
    if not rest:
        return away
    # the last, broken block is that much of a whole one that ends with the series
    last = _of_blocks((values[-_BLOCKS * block :] - level).reshape(_BLOCKS, block))
    return np.concatenate((away, last[-rest:]))


def _of_blocks(blocks: Values) -> Values:
    """The same of whole blocks, shape (k, block); gives shape (k * block,)."""
    count, block = blocks.shape
    basis = legendre.legvander((np.arange(block) + 0.5) * 2 / block - 1, _DEGREE)
    moments = _product(blocks, basis)
    curves = np.empty_like(moments)
    inner = _matrices(block, _BEFORE)
    last = count - _AFTER
    curves[_BEFORE:last] = sum(
        moments[_BEFORE + shift : last + shift] @ inner[_BEFORE + shift]
        for shift in range(-_BEFORE, _AFTER + 1)
    )
    for place in (*range(_BEFORE), *range(last, count)):
        first = 0 if place < _BEFORE else count - _BLOCKS
        curves[place] = np.einsum(
            "bi,bij->j", moments[first : first + _BLOCKS], _matrices(block, place - first)
        )
    return np.asarray((blocks - _product(curves, basis.T)).ravel())


def _product(many: Values, matrix: Values) -> Values:
    """A product in parts so small that BLAS stays with one thread: two take twice the CPU for the same time."""
    result = np.empty((len(many), matrix.shape[1]))
    rows = max(1, _ONE_THREAD // matrix.size)
    for first in range(0, len(many), rows):
        np.matmul(many[first : first + rows], matrix, out=result[first : first + rows])
    return result


@lru_cache(maxsize=256)
def _matrices(block: int, left_out: int) -> Values:
    """From moments of ten blocks to the curve over the one that is left out: shape (10, degree + 1, degree + 1)."""
    middle = (np.arange(block) + 0.5) * 2 / block - 1
    own = legendre.legvander(middle, _DEGREE)
    # each block's polynomials as seen from the block that is left out, over all ten in one scale
    scaled = [(middle + 2 * (each - left_out)) / (2 * _BLOCKS) for each in range(_BLOCKS)]
    wide = [legendre.legvander(each, _DEGREE) for each in scaled]
    gram = sum(each.T @ each for number, each in enumerate(wide) if number != left_out)
    to_own = np.linalg.lstsq(own, wide[left_out], rcond=None)[0]
    result = np.zeros((_BLOCKS, _DEGREE + 1, _DEGREE + 1))
    for number, each in enumerate(wide):
        if number != left_out:
            # a polynomial over a block is one of the block's own moments: wide = own @ shift
            shift = np.linalg.lstsq(own, each, rcond=None)[0]
            result[number] = shift @ np.linalg.solve(gram, to_own.T)
    return result
