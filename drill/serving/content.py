"""What tokens stand for, without the tokens: contents by id, and the hash chain of blocks that a prefix cache keys.

A prompt is a row of segments. Two prompts that begin with the same segments begin with the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_LOW_64 = 0xFFFFFFFFFFFFFFFF
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Segment:
    """``tokens`` tokens whose content is told by ``content`` and by nothing else: a document, a system prompt."""

    content: int
    tokens: int


def chain_hashes(segments: Sequence[Segment], block_tokens: int) -> NDArray[np.uint64]:
    """One hash for each full block, of all content up to its end; never 0.

    Two hashes are equal when the same content lies at the same positions from the start on, and else
    only by an accident of 64 bits, which is what engines live with too. Each stretch of one segment
    in one block is mixed with its place; the hash of a prefix is the sum of its stretches' (mod 2^64).
    """
    begins, contents, insides = [], [], []
    start = 0
    for segment in segments:
        end = start + segment.tokens
        # a stretch begins where the segment does, and with each block from there on
        cuts = np.arange(start - start % block_tokens, end, block_tokens, dtype=np.int64)
        cuts[:1] = start
        begins.append(cuts)
        insides.append(cuts - start)
        contents.append(np.full(len(cuts), segment.content & _LOW_64, dtype=np.uint64))
        start = end
    blocks = start // block_tokens
    if blocks == 0:
        return np.empty(0, dtype=np.uint64)
    begin = np.concatenate(begins)
    stretch = _mixed(np.concatenate(contents)) + np.concatenate(insides).astype(np.uint64)
    stretch = _mixed(_mixed(stretch) + begin.astype(np.uint64))
    with np.errstate(over="ignore"):
        sums = np.cumsum(stretch, dtype=np.uint64)
    ends_block = np.empty(len(begin), dtype=bool)
    ends_block[:-1] = begin[1:] % block_tokens == 0
    ends_block[-1] = start % block_tokens == 0
    hashes = sums[ends_block]
    hashes[hashes == 0] = 1
    return hashes


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finalizer (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""
    with np.errstate(over="ignore"):
        values = values + _GOLDEN
        values = (values ^ (values >> np.uint64(30))) * _MIX[0]
        values = (values ^ (values >> np.uint64(27))) * _MIX[1]
        return values ^ (values >> np.uint64(31))
