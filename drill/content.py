"""What tokens stand for, without the tokens: contents by id, and the hash chain of blocks that a prefix cache keys.

A prompt is a row of segments. Two prompts that begin with the same segments begin with the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
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
    lengths = np.array([segment.tokens for segment in segments], dtype=np.int64)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    blocks = total // block_tokens
    if blocks == 0:
        return np.empty(0, dtype=np.uint64)
    starts = ends - lengths
    boundaries = np.arange(1, blocks + 1, dtype=np.int64) * block_tokens
    if len(segments) == 1:
        begin, owner = boundaries - block_tokens, np.zeros(blocks, dtype=np.int64)
        last = np.arange(blocks)
    else:
        cuts = np.unique(np.concatenate((boundaries, starts, ends)))
        cuts = cuts[cuts <= blocks * block_tokens]
        begin = cuts[:-1]
        owner = np.searchsorted(ends, begin, side="right")
        last = np.searchsorted(cuts[1:], boundaries)
    contents = np.array([segment.content & 0xFFFFFFFFFFFFFFFF for segment in segments], dtype=np.uint64)
    inside = (begin - starts[owner]).astype(np.uint64)
    stretch = _mixed(_mixed(_mixed(contents[owner]) + inside) + begin.astype(np.uint64))
    with np.errstate(over="ignore"):
        hashes = np.cumsum(stretch, dtype=np.uint64)[last]
    return np.where(hashes == 0, np.uint64(1), hashes)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finalizer (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""
    with np.errstate(over="ignore"):
        values = values + _GOLDEN
        values = (values ^ (values >> np.uint64(30))) * _MIX[0]
        values = (values ^ (values >> np.uint64(27))) * _MIX[1]
        return values ^ (values >> np.uint64(31))
