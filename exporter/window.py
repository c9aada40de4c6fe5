"""The trailing window of samples: the one home of state across cycles.

Only this file knows that samples come late, in bunches or not at all, and that counters start
again. Everything here is a pure function of the samples; a question the samples can't answer is
answered with None.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from exporter.sample import STALE_AFTER_SECONDS, Histogram, Sample

S = TypeVar("S", bound=Sample)

MERGE_BELOW_SECONDS = 0.8
"""Scrapes that an engine held up come back in a bunch; intervals shorter than this are merged.

Measured on the captures: without it the mean token gap reads 1.6 to 1.8 times too long.
"""

HORIZON_SECONDS = 330.0
"""Samples older than this (before the newest) are forgotten; the longest question asked is 5 min."""

FINE_SECONDS = 70.0
COARSE_STEP_SECONDS = 5.0
"""Samples older than ``FINE_SECONDS`` are thinned to one in ``COARSE_STEP_SECONDS``: a megabyte less."""

START_SLACK_SECONDS = 0.5
"""A window may be this much shorter than asked: scrapes are not exactly a second apart."""

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

    ``restarts`` are the times of those samples before which what is read started anew.
    """

    samples: tuple[S, ...] = ()
    restarts: tuple[float, ...] = ()

    def appended(self, sample: S) -> Window[S]:
        """The window with ``sample`` as its newest; itself when ``sample`` is not newer.

        A sample that closed an interval shorter than ``MERGE_BELOW_SECONDS`` gives way to the one
        after it, so that in time every interval but the newest is at least that long. The first
        sample after a restart never does: it is where the counters start from.
        """
        samples, restarts = self.samples, self.restarts
        if not samples:
            return replace(self, samples=(sample,))
        if sample.at <= samples[-1].at:
            return self
        if sample.restarted_since(samples[-1]):
            restarts = (*restarts, sample.at)
        elif len(samples) >= 2:  # noqa: PLR2004 -- an interval needs two ends
            short = samples[-1].at - samples[-2].at < MERGE_BELOW_SECONDS
            if short and samples[-1].at not in restarts:
                samples = samples[:-1]
        restarts = tuple(at for at in restarts if at >= sample.at - HORIZON_SECONDS)
        return replace(self, samples=(*_thinned(samples, restarts, sample.at), sample), restarts=restarts)

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

    def span_seconds(self) -> float:
        """From the oldest sample to the newest."""
        return self.samples[-1].at - self.samples[0].at if self.samples else 0.0

    def trailing(self, seconds: float) -> tuple[S, ...]:
        """The samples of the trailing ``seconds``, the newest of those at its start included.

        Empty when the window is shorter than that.
        """
        samples = self.samples
        if not samples:
            return ()
        start = samples[-1].at - seconds + START_SLACK_SECONDS
        for index in range(len(samples) - 1, -1, -1):
            if samples[index].at <= start:
                far = samples[-1].at - samples[index].at > seconds + LONGEST_GAP_SECONDS
                return () if far else samples[index:]
        return ()

    def intervals(self, seconds: float) -> tuple[tuple[S, S], ...]:
        """Neighbouring samples of the trailing ``seconds`` between which nothing restarted.

        Neighbours further apart than ``LONGEST_GAP_SECONDS`` are left out.
        """
        samples = self.trailing(seconds)
        return tuple(
            (before, after)
            for before, after in itertools.pairwise(samples)
            if after.at - before.at <= LONGEST_GAP_SECONDS and not self.restarted_between(before, after)
        )

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
        samples = self.trailing(seconds)
        pieces = self._unbroken([sample for sample in samples if histogram(sample) is not None])
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
        """The largest rate between neighbouring samples in the trailing ``seconds``."""
        if not self.samples:
            return None
        oldest = self.samples[-1].at - seconds
        best: float | None = None
        before: S | None = None
        for sample in self.samples:
            if sample.at < oldest:
                continue
            if before is not None:
                rate = self._rate(counter, before, sample)
                if rate is not None and (best is None or rate > best):
                    best = rate
            before = sample
        return best

    def _rate(self, counter: Callable[[S], float | None], before: S, after: S) -> float | None:
        then, now = counter(before), counter(after)
        seconds = after.at - before.at
        if then is None or now is None or now < then or self.restarted_between(before, after):
            return None
        # the newest interval may be a short one still to be merged: too short to make a rate of
        if not MERGE_BELOW_SECONDS / 2 <= seconds <= LONGEST_GAP_SECONDS:
            return None
        return (now - then) / seconds

    def slope(self, gauge: Callable[[S], float | None], seconds: float) -> float | None:
        """The Theil-Sen slope a second over the trailing ``seconds``: the median over all pairs.

        None when the window is shorter or fewer than 5 values are known. At most 31 of them, evenly
        spread, are used: 465 pairs.
        """
        if not self.trailing(seconds):
            return None
        points = self.values(gauge, seconds)
        if len(points) < 5:  # noqa: PLR2004 -- below that one odd value decides
            return None
        step = -(-len(points) // 31)
        points = points[:: -step or None][::-1]
        slopes = [
            (later - value) / (then - at)
            for index, (at, value) in enumerate(points)
            for then, later in points[index + 1 :]
        ]
        return statistics.median(slopes)


def _thinned(samples: tuple[S, ...], restarts: tuple[float, ...], now: float) -> tuple[S, ...]:
    """What is worth keeping: all of the fine part, before it a sample a step and each restart."""
    kept: list[S] = []
    for index, sample in enumerate(samples):
        if sample.at >= now - FINE_SECONDS:
            return (*kept, *samples[index:])
        wide = not kept or sample.at - kept[-1].at >= COARSE_STEP_SECONDS
        if sample.at >= now - HORIZON_SECONDS and (wide or sample.at in restarts):
            kept.append(sample)
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class Total:
    """A running total of our own: from 0, fed by a counter of the engine's that may start again.

    It exists from the first cycle that knows the counter and never falls.
    """

    value: float = 0.0
    last: float | None = None

    def fed(self, counter: float | None, *, restarted: bool = False) -> Total:
        """The total after a new reading; the first rise after a restart is dropped."""
        if counter is None:
            return self
        if self.last is None or restarted or counter < self.last:
            return Total(self.value, counter)
        return Total(self.value + counter - self.last, counter)

    @property
    def known(self) -> bool:
        """Whether the counter was ever read."""
        return self.last is not None
