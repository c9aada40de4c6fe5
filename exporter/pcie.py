"""What a PCIe link can carry, and how 32-bit byte counters are read: facts of the bus, no I/O."""

from __future__ import annotations

_LANE_BYTES_PER_SECOND = {
    1: 2.5e9 / 8 * 8 / 10,
    2: 5e9 / 8 * 8 / 10,
    3: 8e9 / 8 * 128 / 130,
    4: 16e9 / 8 * 128 / 130,
    5: 32e9 / 8 * 128 / 130,
    6: 64e9 / 8 * 242 / 256,
}
"""Bytes a second of one lane and direction, after encoding (8b/10b, 128b/130b, 242 of a flit's 256 bytes).

Source: the PCI Express base specifications 1.0 to 6.0.
"""

HEADER_FACTOR = 1.09
"""Bytes on the link over payload of host copies: counters include packet headers, 8 to 10 % of it."""


def link_bytes_per_second(generation: int, width: int) -> float | None:
    """What ``width`` lanes of ``generation`` carry in one direction; None for a generation not known."""
    lane = _LANE_BYTES_PER_SECOND.get(generation)
    return None if lane is None else lane * width
