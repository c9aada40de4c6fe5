"""What is usual of a series as time goes on, and when it was outside of that.

Looked at from its beginning, a series has been in a range; a value is outside once it is a whole further range beyond
that (four spreads of a quarter of it each), and it is inside again within one spread. The less is known, the wider a
spread: series wander, and a range of two minutes says little of an hour. What is outside never becomes usual, so that
a long incident stays one, and its end is a return and no event. What is inside becomes usual after two minutes: a slow
drift goes along, a steep rise doesn't explain itself away.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, replace

import bottleneck as bn
import numpy as np
from numpy.typing import NDArray

from analysis.noise import SPREADS_OUT, Noise

Values = NDArray[np.float64]
SPREADS_BACK = 1.0
_RANGE_SPREADS = 4.0
_BLOCK_SECONDS = 10.0
_MOST_BLOCKS = 3000
_STEADY_SECONDS = 5.0
"""What is shorter is taken for noise; of histories with longer steps each value counts."""
_LEARN_SECONDS = 20.0
_LEARN_INSTANTS = 20
_WAIT_SECONDS = 120.0
_WELL_KNOWN_SECONDS = 1200.0
"""From so much of the past on a spread is what it is; before, it is wider by the root of what is missing."""
_ONE_SECONDS = 300.0
"""What is outside again on the same side within so long is outside still."""
_EVENTS = 2
"""Of what single events make so many may follow each other by chance; what they don't explain lasts longer."""
_REMEMBERED_BLOCKS = 2160
_TRIMMED = 0.02
"""Of the blocks that are remembered, so many at each end have no say."""
_SHORT_SECONDS = 300.0
_AS_FAR = 1 / 3
"""What is short and went no more than three times as far as one before it is nothing new; what lasts always is."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One time outside, as places in the series: from ``first`` to ``last``, and inside again at ``back`` (or None).

    ``low``, ``high`` and ``spread``: of what was usual when it began, in the series' unit. ``instants``: how many from
    first to last, without those in which it was inside for a while.
    """

    first: int
    last: int
    back: int | None
    worst: int
    low: float
    high: float
    spread: float
    upwards: bool
    instants: int

    def moved(self, by: float) -> Stretch:
        """The same around a level that was taken off before."""
        return replace(self, low=self.low + by, high=self.high + by)

    def score(self, value: float) -> float:
        """How many spreads a value is beyond what was usual; below 0: it is under it."""
        beyond = max(value - self.high, 0.0) + min(value - self.low, 0.0)
        return beyond / self.spread

    def holds(self, value: float) -> bool:
        """Whether a value is outside on the same side; one that isn't known is not."""
        return value > self.high if self.upwards else value < self.low


def steady(values: Values, step_seconds: float) -> Values:
    """The median over five seconds where steps are shorter; NaN stays NaN."""
    window = int(_STEADY_SECONDS / step_seconds)
    if window < 3:  # noqa: PLR2004 -- of two there is no middle
        return values
    half = window // 2
    gap = np.full(half, np.nan)
    # to the last digit, and so not by analysis.rolling_median: what stood at 0 is to have stood at 0
    result = bn.move_median(np.concatenate((gap, values, gap)), 2 * half + 1, min_count=1)[2 * half :]
    return np.where(np.isnan(values), np.nan, result)


def outside(values: Values, step_seconds: float, noise: Noise) -> tuple[Stretch, ...]:
    """When a series of shape (n,) was outside, in order; NaN is neither in nor out.

    ``values``: on the scale that ``noise`` evens them on.
    """
    block = max(1, round(_BLOCK_SECONDS / step_seconds), -(-len(values) // _MOST_BLOCKS))
    lows, highs = _extremes(values, block)
    well = _WELL_KNOWN_SECONDS / step_seconds / block
    learn = max(1, -(-max(_LEARN_INSTANTS, int(_LEARN_SECONDS / step_seconds)) // block))
    wait = int(_WAIT_SECONDS / step_seconds / block)
    memory = _Memory(learn, wait, well, noise)
    few = _EVENTS * noise.event_seconds / step_seconds
    found: list[Stretch] = []
    since: tuple[int, _Band, int] | None = None
    for number in np.flatnonzero(~np.isnan(lows)).tolist():
        low, high = float(lows[number]), float(highs[number])
        band = memory.band
        if since is not None:
            begun, held, side = since
            if held.side(low, high, SPREADS_BACK) == side:
                continue
            (stretch,) = _stretch(values, begun * block, number * block, held, side)
            since = None
            if stretch.instants <= few and not noise.is_far(stretch.high, float(values[stretch.worst])):
                # what a request or two did is usual of a service: from now on it is known
                memory.see_all(lows[begun:number], highs[begun:number])
                band = memory.band or held
            else:
                found.append(stretch)
                memory.forget_waiting()
                band = held
        side = band.side(low, high, SPREADS_OUT) if band is not None else 0
        if not side and (left := memory.left(lows, highs, number)) is not None:
            band, side = left
        if band is not None and side:
            since = (number, band, side)
        else:
            memory.see(low, high)
    if since is not None:
        last = _stretch(values, since[0] * block, len(values), since[1], since[2])
        found += [
            each for each in last if each.instants > few or noise.is_far(each.high, float(values[each.worst]))
        ]
    return tuple(
        _news(
            _merged(found, values, max(2 * block, int(_ONE_SECONDS / step_seconds))),
            values,
            _SHORT_SECONDS / step_seconds,
        )
    )


@dataclass(frozen=True, slots=True)
class _Band:
    low: float
    high: float
    spread: float

    def side(self, low: float, high: float, spreads: float) -> int:
        """1: a block's highest is above by so many spreads; -1: its lowest is below; 0: neither."""
        if high > self.high + spreads * self.spread:
            return 1
        return -1 if low < self.low - spreads * self.spread else 0


class _Memory:
    """Ranges of blocks that were usual."""

    def __init__(self, learn: int, wait: int, well: float, noise: Noise) -> None:
        self._learn, self._wait, self._well, self._noise = learn, wait, well, noise
        self._waiting: deque[tuple[float, float]] = deque()
        self._blocks: deque[tuple[float, float]] = deque()
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._least, self._most = math.inf, -math.inf
        self._widest = 0.0
        self.band: _Band | None = None

    def left(self, lows: Values, highs: Values, number: int) -> tuple[_Band, int] | None:
        """What a count had always been, and to which side it has left that from this block on, for as long as it waits.

        None where it hasn't, is no count, or wasn't always the same for as long as makes a spread what it is.
        """
        always = self._least
        if not self._noise.counts or always != self._most or len(self._blocks) < self._well:
            return None
        ahead = slice(number, number + max(1, self._wait))
        low, high = lows[ahead], highs[ahead]
        if len(low) < self._wait:
            return None
        side = 1 if np.nanmin(low) > always else -1 if np.nanmax(high) < always else 0
        return (_Band(always, always, self._noise.one / SPREADS_OUT), side) if side else None

    def see(self, low: float, high: float) -> None:
        """A block that was inside; it is known to be usual once it has waited, or while nothing is known yet."""
        self._least, self._most = min(self._least, low), max(self._most, high)
        self._waiting.append((low, high))
        while self._waiting and (len(self._waiting) > self._wait or len(self._blocks) < self._learn):
            self._remember(*self._waiting.popleft())

    def see_all(self, lows: Values, highs: Values) -> None:
        """Blocks that were outside, and were usual."""
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
            if not math.isnan(low):
                self.see(low, high)

    def forget_waiting(self) -> None:
        """What came just before something outside may have been its beginning."""
        self._waiting.clear()

    def _remember(self, low: float, high: float) -> None:
        self._blocks.append((low, high))
        insort(self._lows, low)
        insort(self._highs, high)
        if len(self._blocks) > _REMEMBERED_BLOCKS:
            old_low, old_high = self._blocks.popleft()
            del self._lows[bisect_left(self._lows, old_low)]
            del self._highs[bisect_left(self._highs, old_high)]
        if len(self._blocks) >= self._learn:
            trimmed = int(_TRIMMED * len(self._blocks))
            least, most = self._lows[trimmed], self._highs[-1 - trimmed]
            # a range of less than the time that is waited may be the foot of a slope; what never moved has none
            wider = math.sqrt(max(1.0, self._well / len(self._blocks)))
            ranged = (most - least) / _RANGE_SPREADS * max(1.0, self._wait / len(self._blocks))
            if len(self._blocks) >= self._well:
                # quiet hours don't make the others unusual that were there before
                self._widest = ranged = max(self._widest, ranged)
            spread = self._noise.spread(ranged, least, most, wider)
            self.band = _Band(least, most, spread)


def _extremes(values: Values, block: int) -> tuple[Values, Values]:
    """The lowest and the highest of each block, the last one shorter; NaN where nothing is known."""
    starts = np.arange(0, len(values), block)
    lows = np.fmin.reduceat(values, starts) if len(values) else values
    highs = np.fmax.reduceat(values, starts) if len(values) else values
    return lows, highs


def _stretch(values: Values, begin: int, end: int, band: _Band, side: int) -> list[Stretch]:
    """The part of some blocks that is outside."""
    limit = band.high + SPREADS_BACK * band.spread if side > 0 else band.low - SPREADS_BACK * band.spread
    part = values[begin:end]
    out = np.flatnonzero(part > limit if side > 0 else part < limit)
    first, last = begin + int(out[0]), begin + int(out[-1])
    worst = begin + int(np.nanargmax(part) if side > 0 else np.nanargmin(part))
    known = np.flatnonzero(~np.isnan(values[last + 1 :]))
    back = last + 1 + int(known[0]) if len(known) else None
    return [Stretch(first, last, back, worst, band.low, band.high, band.spread, side > 0, last - first + 1)]


def _merged(found: list[Stretch], values: Values, apart: int) -> list[Stretch]:
    """Stretches on one side with less than ``apart`` instants between them are one."""
    result: list[Stretch] = []
    for each in found:
        before = result[-1] if result else None
        if before is not None and each.first - before.last < apart and each.upwards == before.upwards:
            further = max(before, each, key=lambda one: abs(before.score(float(values[one.worst]))))
            result[-1] = replace(
                before,
                last=each.last,
                back=each.back,
                worst=further.worst,
                instants=before.instants + each.instants,
            )
        else:
            result.append(each)
    return result


def _news(found: list[Stretch], values: Values, short: float) -> list[Stretch]:
    """Without those that are short and have had their like."""
    result = []
    furthest = {True: 0.0, False: 0.0}
    for each in found:
        far = abs(each.score(float(values[each.worst])))
        if each.instants > short:
            result.append(each)
        elif furthest[each.upwards] < _AS_FAR * far:
            result.append(each)
            furthest[each.upwards] = far
    return result
