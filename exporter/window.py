"""The trailing window of samples: the one home of state across cycles.

Only this file knows that samples come late, in bunches or not at all, and that counters start
again. Everything here is a pure function of the samples; a question the samples can't answer is
answered with None.
"""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from exporter.sample import STALE_AFTER_SECONDS, Histogram, Sample

S = TypeVar("S", bound=Sample)

MERGE_BELOW_SECONDS = 0.8
"""Scrapes that an engine held up come back in a bunch; rates are never taken over less than this.

Measured on the captures: without it the mean token gap reads 1.6 to 1.8 times too long.
"""

HORIZON_SECONDS = 330.0
"""Samples older than this (before the newest) are forgotten; the longest question asked is 5 min."""

FINE_SECONDS = 70.0
COARSE_STEP_SECONDS = 5.0
"""Samples older than ``FINE_SECONDS`` are thinned to one in ``COARSE_STEP_SECONDS``: a megabyte less."""

QUICK_READ_SECONDS = 0.1
"""Numbers of a read that took no longer are those of its start: a tenth of an interval at most is at stake."""

START_SLACK_SECONDS = 0.5
"""A window may be this much shorter than asked: scrapes are not exactly a second apart."""

_LOOK_BACK_SAMPLES = 60
_TIME = attrgetter("at")

LONGEST_GAP_SECONDS = STALE_AFTER_SECONDS
"""Samples further apart than numbers hold don't belong together."""


class Delta(NamedTuple):
    """What a counter rose by, and the seconds over which it was seen to."""

    increase: float
    seconds: float

    @property
    def per_second(self) -> float:
        """The mean rate."""
        return self.increase / self.seconds


class HistogramDelta(NamedTuple):
    """What was observed, and the seconds over which."""

    observed: Histogram
    seconds: float


@dataclass(frozen=True, slots=True)
class Window(Generic[S]):
    """Samples of one thing, oldest first, their times strictly rising.

    ``restarts`` are the times of those samples before which what is read started anew;
    ``horizon_seconds`` is the age beyond which both are forgotten.
    """

    samples: tuple[S, ...] = ()
    restarts: tuple[float, ...] = ()
    horizon_seconds: float = HORIZON_SECONDS

    def appended(self, sample: S, *, restarted: bool = False) -> Window[S]:
        """The window with ``sample`` as its newest; itself when ``sample`` is not newer.

        Whether what is read started anew is told by the samples, compared with the newest one that
        tells, or by the caller, who may know more.
        """
        samples, restarts = self.samples, self.restarts
        if not samples:
            return replace(self, samples=(sample,))
        if sample.at <= samples[-1].at:
            return self
        if restarted or _restarted(sample, samples):
            restarts = (*restarts, sample.at)
        oldest = sample.at - self.horizon_seconds
        if restarts and restarts[0] < oldest:
            restarts = tuple(at for at in restarts if at >= oldest)
        kept = _thinned(samples, restarts, oldest, sample.at - FINE_SECONDS)
        # plus, not stars: a minute's samples are touched once and not three times
        return Window(kept + (sample,), restarts, self.horizon_seconds)  # noqa: RUF005

    @property
    def newest(self) -> S:
        """The newest sample. Raises IndexError on an empty window."""
        return self.samples[-1]

    def restarted(self) -> bool:
        """Whether what is read started anew just before the newest sample."""
        return bool(self.restarts) and self.restarts[-1] == self.samples[-1].at

    def restarted_between(self, before: S, after: S) -> bool:
        """Whether what is read started anew after ``before``, up to ``after``."""
        # asked hundreds of times a cycle, and nearly always there is none
        return bool(self.restarts) and any(before.at < at <= after.at for at in self.restarts)

    def trailing(self, seconds: float) -> tuple[S, ...]:
        """The samples of the trailing ``seconds``, the newest of those at its start included.

        Empty when the window is shorter than that.
        """
        first = self._first_of(seconds)
        return () if first is None else self.samples[first:]

    def ends(self, seconds: float) -> tuple[S, S] | None:
        """The first and the last of them; None when the window is shorter, or something restarted in between."""
        first = self._first_of(seconds)
        if first is None or self.restarted_between(self.samples[first], self.samples[-1]):
            return None
        return self.samples[first], self.samples[-1]

    def _first_of(self, seconds: float) -> int | None:
        samples = self.samples
        if not samples:
            return None
        start = samples[-1].at - seconds + START_SLACK_SECONDS
        first = bisect_right(samples, start, key=_TIME) - 1
        far = first < 0 or samples[-1].at - samples[first].at > seconds + LONGEST_GAP_SECONDS
        return None if far else first

    def intervals(self, seconds: float) -> list[tuple[S, S]]:
        """The trailing ``seconds`` as intervals of at least ``MERGE_BELOW_SECONDS``.

        Shorter ones are merged with what follows; those across a restart, or longer than
        ``LONGEST_GAP_SECONDS``, are left out. Empty when the window is shorter.
        """
        return self._intervals(self.trailing(seconds))

    def _intervals(self, samples: Sequence[S]) -> list[tuple[S, S]]:
        found: list[tuple[S, S]] = []
        if not samples:
            return found
        before = samples[0]
        for after in samples[1:]:
            if self.restarted_between(before, after):
                before = after
            elif after.at - before.at >= MERGE_BELOW_SECONDS:
                if after.at - before.at <= LONGEST_GAP_SECONDS:
                    found.append((before, after))
                before = after
        return found

    def delta(self, counter: Callable[[S], float | None], seconds: float) -> Delta | None:
        """What ``counter`` rose by over the trailing ``seconds``.

        The first rise after a restart, or after the counter fell, is dropped together with its
        time. None where the window is shorter, the counter is unknown at both ends of every
        interval, or less than half of the time could be told.
        """
        samples = self.trailing(seconds)
        if len(samples) < 2:  # noqa: PLR2004 -- a rise needs two ends
            return None
        increase = covered = 0.0
        unbroken = not self.restarted_between(samples[0], samples[-1])
        before: S | None = None
        known = math.inf
        for sample in samples:
            value = counter(sample)
            if value is None:
                # absent for a while is not a reset: the next known value closes the gap
                continue
            if (
                value >= known
                and before is not None
                and (unbroken or not self.restarted_between(before, sample))
            ):
                increase += value - known
                covered += sample.at - before.at
            before, known = sample, value
        if covered <= 0.0 or covered < 0.5 * (samples[-1].at - samples[0].at):
            return None
        return Delta(increase, covered)

    def observed(self, histogram: Callable[[S], Histogram | None], seconds: float) -> HistogramDelta | None:
        """What ``histogram`` took in over the trailing ``seconds``; restarts as in ``delta``."""
        return self._observed(histogram, self.trailing(seconds))

    def observed_up_to(
        self, histogram: Callable[[S], Histogram | None], seconds: float
    ) -> HistogramDelta | None:
        """The same, or what was taken in since the window began where it is shorter than that."""
        return self._observed(histogram, self.trailing(seconds) or self.samples)

    def _observed(
        self, histogram: Callable[[S], Histogram | None], samples: Sequence[S]
    ) -> HistogramDelta | None:
        pieces = self._told_pieces(histogram, samples)
        total: Histogram | None = None
        covered = 0.0
        for start, end in pieces:
            then, now = histogram(start), histogram(end)
            if end is start or then is None or now is None:
                continue
            piece = now.minus(then)
            total = piece if total is None or piece is None else total.plus(piece)
            if total is None:
                return None
            covered += end.at - start.at
        if total is None or covered < 0.5 * (samples[-1].at - samples[0].at):
            return None
        return HistogramDelta(total, covered)

    def _told_pieces(
        self, histogram: Callable[[S], Histogram | None], samples: Sequence[S]
    ) -> list[tuple[S, S]]:
        """First and last of each stretch of those that tell ``histogram`` within which nothing restarted."""
        ends = (samples[0], samples[-1]) if samples else None
        # nearly always: what lies between need not be looked at
        if ends and not self.restarted_between(*ends) and all(histogram(end) is not None for end in ends):
            return [ends]
        return self._unbroken([sample for sample in samples if histogram(sample) is not None])

    def _unbroken(self, samples: Sequence[S]) -> list[tuple[S, S]]:
        """First and last of each stretch of ``samples`` within which nothing restarted."""
        if not samples:
            return []
        if not self.restarted_between(samples[0], samples[-1]):
            return [(samples[0], samples[-1])]
        pieces = []
        first = last = samples[0]
        for sample in samples[1:]:
            if self.restarted_between(last, sample):
                pieces.append((first, last))
                first = sample
            last = sample
        return [*pieces, (first, last)]

    def peak(self, gauge: Callable[[S], float | None], seconds: float) -> float | None:
        """The largest known value of the trailing ``seconds``, or of what there is of them."""
        known = [value for _, value in self.values(gauge, seconds)]
        return max(known) if known else None

    def values(self, gauge: Callable[[S], float | None], seconds: float) -> list[tuple[float, float]]:
        """``(time, value)`` where known in the trailing ``seconds``, or in what there is of them."""
        if not self.samples:
            return []
        oldest = self.samples[-1].at - seconds
        return [
            (sample.at, value)
            for sample in self.samples
            if sample.at >= oldest and (value := gauge(sample)) is not None
        ]

    def peak_rate(self, counter: Callable[[S], float | None], seconds: float) -> float | None:
        """The largest rate of an interval in the trailing ``seconds``, or in what there is of them.

        An answer that was long in coming may hold what was counted until its end: the interval it ends
        is taken to last until then, so that a page that comes 5 s late is no sixfold peak.
        """
        oldest = self.samples[-1].at - seconds if self.samples else 0.0
        rates = [
            (now - then) / (after.at + _late_seconds(after) - before.at)
            for before, after in self._intervals([sample for sample in self.samples if sample.at >= oldest])
            if (then := counter(before)) is not None and (now := counter(after)) is not None and now >= then
        ]
        return max(rates, default=None)

    def slope(self, gauge: Callable[[S], float | None], seconds: float) -> float | None:
        """The Theil-Sen slope a second over the trailing ``seconds``: the median over all pairs.

        None when the window is shorter, something restarted in it, or fewer than 5 values are known.
        At most 31 of them, evenly spread, are used: 465 pairs.
        """
        samples = self.trailing(seconds)
        if not samples or self.restarted_between(samples[0], samples[-1]):
            return None
        points = self.values(gauge, seconds)
        if len(points) < 5:  # noqa: PLR2004 -- below that one odd value decides
            return None
        # from the newest backwards, so that it is always among them
        step = math.ceil(len(points) / 31)
        points = points[::-step]
        slopes = [
            (later - earlier) / (now - then)
            for index, (now, later) in enumerate(points)
            for then, earlier in points[index + 1 :]
        ]
        return statistics.median(slopes)


def _late_seconds(sample: Sample) -> float:
    return sample.read_seconds if sample.read_seconds > QUICK_READ_SECONDS else 0.0


def _restarted(sample: S, earlier: Sequence[S]) -> bool:
    """By the newest of ``earlier`` that can be compared: a counter may have been absent for a while."""
    for before in itertools.islice(reversed(earlier), _LOOK_BACK_SAMPLES):
        told = sample.restarted_since(before)
        if told is not None:
            return told
    return False


def _thinned(
    samples: tuple[S, ...], restarts: tuple[float, ...], oldest: float, fine_from: float
) -> tuple[S, ...]:
    """What is worth keeping: all of the fine part, before it a sample a step and each restart."""
    kept: list[S] = []
    for index, sample in enumerate(samples):
        if sample.at >= fine_from:
            return samples if len(kept) == index else tuple(kept) + samples[index:]
        wide = not kept or sample.at - kept[-1].at >= COARSE_STEP_SECONDS
        if sample.at >= oldest and (wide or sample.at in restarts):
            kept.append(sample)
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class Total:
    """A running total of our own: from 0, fed by a counter of the engine's that may start again.

    It never falls. A counter that an engine shows only after its first observation counts from 0: its
    first value is a rise that happened under our eyes. One that was there at the first sample begins
    where it stands.
    """

    value: float = 0.0
    last: float | None = None
    missed: bool = False
    """Whether the engine was read without the counter, and has not started anew since."""

    def fed(self, counter: float | None, *, restarted: bool = False) -> Total:
        """The total after a new reading; the first rise after a restart is dropped."""
        if counter is None:
            if self.last is None:
                return self if self.missed else Total(self.value, None, missed=True)
            # gone for a while; where it was is still where it goes on from, unless all began anew
            return Total(self.value, None, missed=True) if restarted else self
        if self.last is None:
            first = counter if self.missed and not restarted else 0.0
            return Total(self.value + first, counter)
        if counter == self.last:
            return self
        if restarted or counter < self.last:
            return Total(self.value, counter)
        return Total(self.value + counter - self.last, counter)

    @property
    def known(self) -> bool:
        """Whether the counter was ever read."""
        return self.last is not None or self.value > 0
