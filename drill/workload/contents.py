"""Ids of contents: numbers that differ wherever what they stand for differs, but for an accident of 62 bits."""

from __future__ import annotations

_LOW_64 = (1 << 64) - 1
_BITS = 62


def content_id(*parts: int) -> int:
    """One id for a row of numbers, such as the stream's, the document's; below 2^62, where engines begin theirs.

    SplitMix64's finalizer (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), chained.
    """
    value = len(parts)
    for part in parts:
        value = (value * 0x9E3779B97F4A7C15 + part + 0x9E3779B97F4A7C15) & _LOW_64
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _LOW_64
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _LOW_64
        value ^= value >> 31
    return value >> (64 - _BITS)
