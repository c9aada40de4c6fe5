"""Bytes from rates, made exact by counters that wrap: for one direction of one GPU. Arithmetic alone.

Rates times their intervals add up to what moved, give or take their error and a lag: some 70 ms of what moved
show in the next interval only. A counter knows exactly what moved, but for whole wraps. So rates are added up
over a stretch, from one reading to another, until they tell the number of wraps in it without doubt; then the
counter's bytes replace theirs. The ends of a stretch are in doubt by what the interval after them shows, so the
newest interval always stands as its rate says.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

RATE_ERROR = 0.1
"""By how much rates and counters may differ."""
_QUIET = 0.001
"""An interval with less than this of a stretch in it ends the stretch without harm."""


class Stretch(NamedTuple):
    """Bytes so far: ``settled`` up to its beginning, and ``told`` by rates since, the newest interval included.

    ``begun`` and ``newest`` are the counter's readings at its beginning and now, ``first`` and ``last`` what rates
    told of its first and its newest interval. ``contradictions`` are stretches in which rates and counter can't
    both be right.
    """

    settled: float
    begun: int
    newest: int
    told: float = 0.0
    first: float | None = None
    last: float = 0.0
    contradictions: int = 0

    @property
    def total(self) -> float:
        """All bytes so far."""
        return self.settled + self.told

    def known(self, moved: int, counter: int) -> Stretch:
        """After an interval of which the counter tells by itself what ``moved``."""
        return self._replace(
            settled=self.total + moved, begun=counter, newest=counter, told=0.0, first=None, last=0.0
        )

    def broken(self, counter: int) -> Stretch:
        """After an interval of which nothing is known."""
        return self.known(0, counter)

    def after(self, told: float, counter: int, bits: int, slack: float) -> Stretch:
        """After an interval of which rates have ``told``; ``slack``: bytes by which its ends may be off."""
        settled = self._settled(told, 1 << bits, slack)
        return settled._replace(
            newest=counter,
            told=settled.told + told,
            first=told if settled.first is None else settled.first,
            last=told,
        )

    def _settled(self, following: float, modulus: int, slack: float) -> Stretch:
        """Ended at the newest reading, if that tells the wraps: ``following`` is told of the interval after it."""
        if self.first is None:
            return self
        least = max(0.0, (1 - RATE_ERROR) * self.told - (1 + RATE_ERROR) * self.first - slack)
        most = (1 + RATE_ERROR) * (self.told + following) + slack
        if most - least >= modulus:
            is_hopeless = 2 * RATE_ERROR * self.told >= modulus and following <= _QUIET * self.told
            return self._ended(self.told) if is_hopeless else self
        difference = (self.newest - self.begun) % modulus
        exact = difference + modulus * max(0, ceil((least - difference) / modulus))
        if exact <= most:
            return self._ended(exact)
        # what the counter shows has moved for certain, however often it wrapped besides
        return self._ended(max(self.told, difference))._replace(contradictions=self.contradictions + 1)

    def _ended(self, moved: float) -> Stretch:
        return self._replace(settled=self.settled + moved, begun=self.newest, told=0.0, first=None, last=0.0)
