"""What went over PCIe in all, from readings of rates and of counters that wrap, either of which may be missing."""

from __future__ import annotations

from exporter.sampler.backend import ByteCounters, ByteRates
from exporter.sampler.pcie_counting import LINE_TOLERANCE, moved, seconds_between
from exporter.sampler.pcie_stretch import Stretch

SUSPICIONS = 3
"""So many intervals in a row in which one source shows nothing and another something tell that it is stuck."""
_MOST_SLACK = 0.05
"""Of an interval: where its length is less certain than this, so are bytes reckoned from a rate."""
_NOTHING = 1 << 20
"""Bytes that may show in an interval late: what one source shows and the other doesn't begins above."""


class PcieTotals:
    """Bytes since the first reading, by direction.

    An interval of which a direction's bytes can't be told adds nothing to it and counts as ambiguous. Where the
    rates of an interval are all zero and the counters moved, or the other way round, that is a disagreement:
    ``rates_stuck`` and ``counters_stuck`` count such intervals in a row.
    """

    __slots__ = (
        "_contradictions",
        "_counters",
        "_in",
        "_out",
        "_published",
        "_rates_at",
        "ambiguous",
        "counters_stuck",
        "disagreements",
        "rates_stuck",
    )

    def __init__(self) -> None:
        self._out = self._in = Stretch(0.0, 0, 0)
        self.ambiguous = self.disagreements = 0
        self.rates_stuck = self.counters_stuck = 0
        self._counters: ByteCounters | None = None
        self._rates_at: float | None = None
        self._contradictions = 0
        self._published = 0.0, 0.0

    def lose(self) -> None:
        """What was read so far has no continuation: the GPU or the library was gone in between."""
        if self._counters is not None or self._rates_at is not None:
            self.ambiguous += 1
        self._counters = self._rates_at = None

    def add(self, rates: ByteRates | None, counters: ByteCounters | None, line: float) -> None:
        """The next readings, of the time since the last ones. ``line``: bytes a second that the link can carry."""
        before, rates_at = self._counters, self._rates_at
        told = (None, None) if rates is None else _told(rates, line)
        if rates is not None:
            self._rates_at = rates.at
        if counters is not None and before is not None and counters.bits == before.bits:
            slack_seconds = 0.0 if rates is None else _skew(before, counters, rates)
            if rates is not None and slack_seconds > _MOST_SLACK * (rates.at - rates.since):
                told = None, None  # they speak of another time, as after a read that failed
            self._both(before, counters, told, line, slack_seconds)
        elif before is None and rates_at is None:
            self._go_on((0, 0), counters)  # the first reading of all
        elif rates is not None and rates.since == rates_at:
            self._go_on(told, counters)
        else:
            self._go_on((None, None), counters)
        self._counters = counters
        self._published = max(self._published[0], self._out.total), max(self._published[1], self._in.total)

    @property
    def out_bytes(self) -> float:
        """Away from the GPU. Never falls, even where rates had told too much before the counters were asked."""
        return self._published[0]

    @property
    def in_bytes(self) -> float:
        """Towards the GPU."""
        return self._published[1]

    def _go_on(self, told: tuple[float | None, float | None], counters: ByteCounters | None) -> None:
        """By rates alone, as there is no reading of counters before this one or none now."""
        self.ambiguous += None in told
        now = (0, 0) if counters is None else (counters.out_bytes, counters.in_bytes)
        self._out, self._in = (
            stretch.broken(counter) if each is None else stretch.shown(each, counter)
            for stretch, each, counter in zip((self._out, self._in), told, now, strict=True)
        )

    def _both(
        self,
        before: ByteCounters,
        now: ByteCounters,
        told: tuple[float | None, float | None],
        line: float,
        slack_seconds: float,
    ) -> None:
        told, are_still = self._checked(before, now, told)
        if are_still:
            self._go_on(told, now)
            return
        seconds = seconds_between(before, now)
        known = True
        stretches = []
        for stretch, old, new, rate in (
            (self._out, before.out_bytes, now.out_bytes, told[0]),
            (self._in, before.in_bytes, now.in_bytes, told[1]),
        ):
            certain = moved(old, new, now.bits, seconds, line)
            if certain is not None:
                stretches.append(stretch.known(certain, rate, new))
            elif rate is not None:
                stretches.append(stretch.after(rate, new, now.bits, line * slack_seconds))
            else:
                stretches.append(stretch.broken(new))
                known = False
        self._out, self._in = stretches
        self.ambiguous += not known
        contradictions = sum(stretch.contradictions for stretch in stretches)
        self.ambiguous += contradictions - self._contradictions
        self.disagreements += contradictions - self._contradictions
        self._contradictions = contradictions

    def _checked(
        self, before: ByteCounters, now: ByteCounters, told: tuple[float | None, float | None]
    ) -> tuple[tuple[float | None, float | None], bool]:
        """The rates, if zeros among them can be believed; and whether it is the counters that are stuck."""
        have_moved = (before.out_bytes, before.in_bytes) != (now.out_bytes, now.in_bytes)
        if told == (0, 0) and have_moved:
            self.rates_stuck += 1
            self.disagreements += 1
            return (None, None), False
        self.rates_stuck = 0
        if have_moved or sum(each or 0 for each in told) <= _NOTHING:
            self.counters_stuck = 0
            return told, False
        self.counters_stuck += 1
        if self.counters_stuck == 1:
            return told, False  # bytes show late in rates: these may have been counted before
        # the first such interval was taken from counters that stood still: its bytes are in no total
        self.ambiguous += self.counters_stuck == 2  # noqa: PLR2004 - the second shows it
        self.disagreements += 1
        return told, True


def _told(rates: ByteRates, line: float) -> tuple[float | None, float | None]:
    """Bytes by the rates, as far as they can be true."""
    seconds = rates.at - rates.since
    if seconds <= 0 or rates.slack_seconds > _MOST_SLACK * seconds:
        return None, None
    limit = LINE_TOLERANCE * line
    outgoing, incoming = (
        None if rate is None or rate > limit else rate * seconds
        for rate in (rates.out_bytes_per_second, rates.in_bytes_per_second)
    )
    return outgoing, incoming


def _skew(before: ByteCounters, now: ByteCounters, rates: ByteRates) -> float:
    """How far apart the ends of the two sources' intervals may lie, in seconds."""
    asked = sum(each.at - (each.at if each.since is None else each.since) for each in (before, now))
    return abs(before.at - rates.since) + abs(now.at - rates.at) + asked + rates.slack_seconds
