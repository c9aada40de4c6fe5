"""What the sampler writes to its pipe: a line of JSON a second, these tuples as arrays.

One definition for both ends: the sampler dumps the tuples as they are, the sidecar decodes them with
msgspec by their types. Times are CLOCK_MONOTONIC, which both processes share.
"""

from __future__ import annotations

from typing import NamedTuple

from exporter.gpu_sample import GpuSample

FRAME_SECONDS = 1.0
"""Time between two frames; each is also the sampler's heartbeat."""
HUNG_SECONDS = 5.0
"""A call of the library that takes longer hangs: the slowest that come back take a second or two."""
ASLEEP_SECONDS = 3.0
"""Whoever does something each second and hasn't for so long did not run: over that time it can't blame others."""
ENDING_NAME = "gpus-ending"
"""What a sampler's process is called (``/proc/PID/comm``) that ends amid a call of the library, from then until it is
gone, which the kernel may keep it from: the next sidecar starts none beside it."""
REOPEN_EXIT = 75
"""The sampler's exit code where the library has to be loaded by a fresh process (EX_TEMPFAIL)."""


class Trouble(NamedTuple):
    """What keeps a sampler from reading at all: a fixed ``reason``, and a line that says what to do."""

    reason: str
    line: str


class Unopened(NamedTuple):
    """A GPU that the driver counts and that can't be opened, and why."""

    device_index: int
    reason: str
    line: str


class Hung(NamedTuple):
    """A GPU of which one group has been read since ``since`` without an end; its sample just ages.

    Without ``uuid``, a call that is about no one GPU, and ``group`` says in words which.
    """

    uuid: str
    group: str
    since: float


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
    ``errors_total`` are (reason, failures) that belong to no group of a GPU: of opening and of events.
    """

    sequence: int
    at: float
    started_at: float
    gpus: tuple[GpuSample, ...] = ()
    gpus_expected: int | None = None
    trouble: Trouble | None = None
    library: str = ""
    own: Own | None = None
    unopened: tuple[Unopened, ...] = ()
    hung: tuple[Hung, ...] = ()
    errors_total: tuple[tuple[str, float], ...] = ()
