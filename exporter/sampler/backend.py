"""What a maker's library has to offer the sampler: small enough that another maker's is 150 lines.

The sampler does the rest: threads, tiers, wrap-around, isolation, counting of errors. A backend raises
``ReadError`` and nothing else that a caller should expect.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from exporter.gpu_sample import (
    GpuHealth,
    GpuIdentity,
    GpuMemory,
    GpuProcess,
    GpuUtilisation,
    NvLink,
    PcieLink,
)


class Remedy:
    """What to do about a failed read; see the table in ``nvml_errors``."""

    DROP = "drop"
    """Never to be had from this driver: don't ask again until everything is opened anew."""
    SKIP = "skip"
    """No data at this moment."""
    DEVICE_DOWN = "device_down"
    """The GPU is ill: all its groups go, others go on."""
    REOPEN = "reopen"
    """The library has lost its driver: everything has to be opened anew."""
    RETRY = "retry"
    """Odd; counted, and asked again at the next turn."""


class ReadError(Exception):
    """A read failed for ``reason``, a fixed word for a label; ``remedy`` is one of ``Remedy``."""

    def __init__(self, reason: str, remedy: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.remedy = remedy


class ByteCounters(NamedTuple):
    """Running byte counters of PCIe that wrap at ``2 ** bits``.

    The reading lies between ``since``, before the library was asked, and ``at``, once it had answered, both of
    CLOCK_MONOTONIC; ``since`` None: at ``at``. ``stamp`` is the library's own time of it, in seconds of any clock.
    """

    at: float
    out_bytes: int
    in_bytes: int
    bits: int
    since: float | None = None
    stamp: float | None = None


class ByteRates(NamedTuple):
    """Mean bytes a second over the time from ``since`` to ``at`` (CLOCK_MONOTONIC), as the library reckons.

    None for one that it can't tell. ``source`` is gpm or window. ``slack_seconds``: how far off the time between
    ``since`` and ``at`` may be.
    """

    since: float
    at: float
    out_bytes_per_second: float | None
    in_bytes_per_second: float | None
    source: str
    slack_seconds: float = 0.0


class Event(NamedTuple):
    """Something that a GPU told of by itself: an XID."""

    uuid: str
    xid: int


class Device(Protocol):
    """One GPU or MIG instance; called by one thread at a time, not always the same. Each read raises ReadError."""

    @property
    def identity(self) -> GpuIdentity:
        """Which GPU."""

    def memory(self) -> GpuMemory:
        """Memory now."""

    def utilisation(self) -> GpuUtilisation:
        """How busy it was."""

    def byte_counters(self) -> ByteCounters:
        """PCIe bytes, as they run."""

    def byte_rates(self) -> ByteRates:
        """PCIe bytes a second since the last call. The first call has nothing to tell: SKIP."""

    def byte_window(self) -> ByteRates:
        """PCIe bytes a second over a window that the call itself waits for: some 20 ms a direction."""

    def link(self) -> PcieLink:
        """The PCIe link."""

    def nvlink(self) -> NvLink:
        """All NVLinks together."""

    def health(self) -> GpuHealth:
        """Temperature, power, errors. Parts that can't be had are None or left out."""

    def processes(self) -> tuple[GpuProcess, ...]:
        """Who uses it."""

    def left_out(self) -> tuple[tuple[str, str, float], ...]:
        """Parts that failed without failing their group, so far: (part, reason, failed reads). Raises nothing."""


class Backend(Protocol):
    """A maker's library. ``open`` may take seconds, or for ever."""

    def open(self) -> None:
        """Load and initialise the library. Raises ReadError."""

    def close(self) -> None:
        """Let go of it. Raises nothing."""

    @property
    def version(self) -> str:
        """Which driver and library answer; empty before ``open``."""

    @property
    def expected(self) -> int | None:
        """How many GPUs the driver counts, those that can't be opened included."""

    def devices(self) -> tuple[Device, ...]:
        """All GPUs and MIG instances that can be opened."""

    def unopened(self) -> tuple[tuple[int, ReadError], ...]:
        """Those that are counted and can't be opened, by index, and why."""

    def next_event(self, seconds: float) -> Event | None:
        """Wait for an event, at most ``seconds``; None where none came. Raises ReadError."""
