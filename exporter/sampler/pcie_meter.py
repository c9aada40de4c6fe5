"""What goes over PCIe, from the best source that a GPU has.

Profiling's rates (gpm) where the GPU has them, checked and made exact by the byte counters; else the counters
alone, read so often that they can't wrap unseen; else, only when asked for, windows of 20 ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from exporter.gpu_sample import PcieLink, PcieTraffic
from exporter.sampler.backend import ByteRates, Device, ReadError, Remedy
from exporter.sampler.pcie_counting import FASTEST_LINK, LINE_TOLERANCE, poll_interval
from exporter.sampler.pcie_sources import Sources
from exporter.sampler.pcie_totals import SUSPICIONS, PcieTotals

_GPM, _COUNTER, _WINDOW = "gpm", "counter", "window"
_GPM_SECONDS = 0.2
"""Between two samples at least; the library's own minimum is 0.1."""
_TOO_SOON_SECONDS = 0.002
"""Counters read twice within less can't be judged by the line rate: they move in lumps."""


class PcieMeter:
    """The traffic of one device, by one thread at a time. ``window``: whether the 20 ms window may be used.

    Reading with that window takes some 40 ms.
    """

    __slots__ = (
        "_clock",
        "_device",
        "_line",
        "_read_at",
        "_source",
        "_sources",
        "_totals",
        "_was_told",
        "_window",
        "_windowed",
    )

    def __init__(self, device: Device, *, window: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._device = device
        self._window = window
        self._clock = clock
        self._sources = Sources()
        self._totals = PcieTotals()
        self._line: float | None = None
        self._was_told = False
        self._source = ""
        self._read_at: float | None = None
        self._windowed: ByteRates | None = None

    def told(self, link: PcieLink | None) -> None:
        """The link as read now; None where that can't be had. The fastest that was ever told holds.

        Until one is told, the link is taken for the fastest there is: also where only what it runs at is known, as an
        idle one may run slower than it can.
        """
        self._was_told = True
        if link is None or link.max_generation is None or link.max_width is None:
            return
        line = link.max_bytes_per_second
        if line is not None:
            self._line = max(line, self._line or 0.0)

    @property
    def interval_seconds(self) -> float | None:
        """How often to ``poll`` beyond once a second; None: that is enough. Follows from the link alone."""
        return poll_interval(self._line or FASTEST_LINK) if self._source == _COUNTER else None

    def poll(self) -> None:
        """Read on. Raises ReadError: with DROP where the device has no source at all."""
        if not self._was_told:
            with suppress(ReadError):
                self.told(self._device.link())
        self._sources.trouble = None
        try:
            self._read(self._clock())
        except ReadError:
            self.lose()
            raise
        if self._sources.trouble is not None:
            raise self._sources.trouble
        if not self._source:
            names = (_GPM, _COUNTER, _WINDOW) if self._window else (_GPM, _COUNTER)
            raise self._sources.refusal(*names) or ReadError(
                "no_data", Remedy.SKIP, "PCIe: no source just now"
            )

    def lose(self) -> None:
        """What was read so far has no continuation: the GPU was gone, or ill, and may be reset."""
        self._totals.lose()

    def traffic(self) -> PcieTraffic | None:
        """What was read so far; None before anything was."""
        if not self._source or self._read_at is None:
            return None
        if self._source == _WINDOW:
            rates = self._windowed
            return PcieTraffic(
                _WINDOW,
                out_bytes_per_second=None if rates is None else self._possible(rates.out_bytes_per_second),
                in_bytes_per_second=None if rates is None else self._possible(rates.in_bytes_per_second),
                ambiguous_intervals_total=float(self._totals.ambiguous),
                disagreements_total=float(self._totals.disagreements),
            )
        return PcieTraffic(
            self._source,
            out_bytes_total=self._totals.out_bytes,
            in_bytes_total=self._totals.in_bytes,
            ambiguous_intervals_total=float(self._totals.ambiguous),
            disagreements_total=float(self._totals.disagreements),
        )

    def _read(self, now: float) -> None:
        has_gpm = self._sources.is_usable(_GPM, now)
        if self._read_at is not None and now - self._read_at < (
            _GPM_SECONDS if has_gpm else _TOO_SOON_SECONDS
        ):
            return
        has_other = self._sources.is_usable(_COUNTER, now)
        rates = self._sources.read(_GPM, self._device.byte_rates, now, has_other=has_other)
        counters = self._sources.read(_COUNTER, self._device.byte_counters, now)
        if rates is not None or counters is not None:
            self._totals.add(rates, counters, self._line or FASTEST_LINK)
            self._judge(now)
        self._source = next((name for name in (_GPM, _COUNTER) if self._sources.is_usable(name, now)), "")
        if not self._source and self._window:
            self._windowed = self._sources.read(_WINDOW, self._device.byte_window, now)
            self._source = _WINDOW if self._sources.is_usable(_WINDOW, now) else ""
        self._read_at = now

    def _judge(self, now: float) -> None:
        """Leave alone the source that shows nothing while the other moves."""
        if self._totals.rates_stuck >= SUSPICIONS:
            self._totals.rates_stuck = 0
            self._sources.pause(_GPM, now)
        if self._totals.counters_stuck >= SUSPICIONS:
            self._totals.counters_stuck = 0
            self._sources.pause(_COUNTER, now)

    def _possible(self, rate: float | None) -> float | None:
        limit = LINE_TOLERANCE * (self._line or FASTEST_LINK)
        return None if rate is None or rate > limit else rate
