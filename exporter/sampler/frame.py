"""What the sampler writes to its pipe: a line of JSON a second, these tuples as arrays.

One definition for both ends: the sampler dumps the tuples as they are, the sidecar decodes them with
msgspec by their types. Times are CLOCK_MONOTONIC, which both processes share.
"""

from __future__ import annotations

from typing import NamedTuple

from exporter.gpu_sample import GpuSample

FRAME_SECONDS = 1.0
"""Time between two frames; each is also the sampler's heartbeat."""


class Trouble(NamedTuple):
    """What keeps a sampler from reading at all: a fixed ``reason``, and a line that says what to do."""

    reason: str
    line: str


class Own(NamedTuple):
    """What the sampler says of itself."""

    cpu_seconds: float
    driver_seconds: float
    """Spent inside calls of the library, all threads together."""
    resident_bytes: float
    fast_interval_seconds: float | None = None
    """Between two reads of byte counters that can wrap; None where none is read fast."""


class Frame(NamedTuple):
    """One second. ``gpus`` are the newest sample of each GPU, however old; the sidecar judges by ``at``.

    ``gpus_expected`` is how many the driver counts, None before it was asked. ``trouble`` is set while
    nothing can be read. ``started_at`` says which sampler this is, ``library`` which driver answers.
    """

    sequence: int
    at: float
    started_at: float
    gpus: tuple[GpuSample, ...] = ()
    gpus_expected: int | None = None
    trouble: Trouble | None = None
    library: str = ""
    own: Own | None = None
