"""When the difference of two readings of a counter that wraps can be believed. Arithmetic alone.

What moved is known modulo ``2 ** bits``. It is known in full only where the link can't have carried more than
that between the two readings. How busy the link was before says nothing about it: 32 bits are full after 68 ms
of Gen5 x16, so a burst may begin and end unseen between two slow reads of an idle GPU. So how often a counter
has to be read follows from the link alone, not from traffic.
"""

from __future__ import annotations

from exporter.pcie import link_bytes_per_second
from exporter.sampler.backend import ByteCounters

FASTEST_LINK = link_bytes_per_second(6, 16) or 0.0
"""Of a link that isn't told: the fastest there is, so that nothing is believed that might be false."""
LINE_TOLERANCE = 1.1
"""What is told above the line rate by more than this is no reading of this link."""
SHORTEST_POLL_SECONDS = 0.05
"""20 Hz: what reading counters may cost."""
COUNTER_BITS = 32


def seconds_between(old: ByteCounters, new: ByteCounters) -> float:
    """The longest time that can lie between the two readings.

    From before the one call to after the other; longer where the library's own stamps say so, as they would of
    values that it keeps. A clock that was set makes stamps leap: forward costs an interval, backward nothing.
    """
    seconds = new.at - (old.at if old.since is None else old.since)
    if old.stamp is None or new.stamp is None:
        return seconds
    return max(seconds, new.stamp - old.stamp)


def moved(old: int, new: int, bits: int, seconds: float, line_bytes_per_second: float) -> int | None:
    """Bytes between two readings at most ``seconds`` apart; None where they can't be told.

    That is where the counter can have wrapped once more than it shows, and where it shows more than the line
    carries: then it began anew, as after a reset.
    """
    modulus = 1 << bits
    most = line_bytes_per_second * seconds
    if seconds < 0 or most >= modulus:
        return None
    difference = (new - old) % modulus
    return None if difference > LINE_TOLERANCE * most else difference


def poll_interval(line_bytes_per_second: float) -> float | None:
    """How often a 32-bit counter has to be read so that ``moved`` can tell: twice a wrap, at most 20 Hz.

    None where that isn't worth it: once a second is enough, or not even 20 Hz is.
    """
    wrap_seconds = (1 << COUNTER_BITS) / line_bytes_per_second
    interval = max(wrap_seconds / 2, SHORTEST_POLL_SECONDS)
    return None if interval >= wrap_seconds or interval >= 1 else interval
