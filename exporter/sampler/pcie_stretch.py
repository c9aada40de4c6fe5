"""Bytes from rates, made exact by counters that wrap: for one direction of one GPU. Arithmetic alone.

Rates times their intervals add up to what moved, give or take their error and a lag: the last of what moved in an
interval, some 70 ms, shows in the next one only. A counter knows exactly what moved, but for whole wraps. So rates
are added up over a stretch, from one reading to another, until they tell the number of wraps in it without doubt;
then the counter's bytes replace theirs. How far a reading is ahead of the rates shows in the interval after it.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

RATE_ERROR = 0.1
"""By how much rates and counters may differ."""
_QUIET = 0.001
"""A stretch may end without its wraps being known where the next interval shows less than this of it."""


class Stretch(NamedTuple):
    """Bytes so far: ``settled`` at the last reading whose bytes are known, and what rates ``told`` since.

    ``owed`` of what they told is settled already: it had moved by then and showed later. ``begun`` and ``newest`` are
    the counter's readings at the beginning and now, ``first`` is told of the first interval, None where there is
    none yet. ``contradictions`` are stretches in which rates and counter can't both be right.
    """

    settled: float
    begun: int
    newest: int
    told: float = 0.0
    owed: float = 0.0
    first: float | None = None
    contradictions: int = 0

    @property
    def total(self) -> float:
        """All bytes so far."""
        return self.settled + max(0.0, self.told - self.owed)

    def known(self, moved: int, told: float | None, counter: int) -> Stretch:
        """After an interval in which ``moved`` for certain; ``told``: what rates say of it."""
        owed = min(max(0.0, self.owed - self.told) + max(0.0, moved - (told or 0.0)), moved)
        return Stretch(self.total + moved, counter, counter, owed=owed, contradictions=self.contradictions)

    def shown(self, told: float, counter: int) -> Stretch:
        """After an interval of which rates have ``told``, and no counter says anything."""
        after = self._replace(told=self.told + told)
        owed = max(0.0, after.owed - after.told)
        return Stretch(after.total, counter, counter, owed=owed, contradictions=self.contradictions)

    def broken(self, counter: int) -> Stretch:
        """After an interval of which nothing is known."""
        return Stretch(self.total, counter, counter, contradictions=self.contradictions)

    def after(self, told: float, counter: int, bits: int, slack: float) -> Stretch:
        """After an interval of which rates have ``told``; ``slack``: bytes by which its ends may be off."""
        settled = self._settled(told, 1 << bits, slack)
        first = told if settled.first is None else settled.first
        return settled._replace(newest=counter, told=settled.told + told, first=first)

    def _settled(self, following: float, modulus: int, slack: float) -> Stretch:
        """Ended at the newest reading, if that tells the wraps: ``following`` is told of the interval after it."""
        if self.first is None:
            return self
        least = max(0.0, (1 - RATE_ERROR) * self.told - (1 + RATE_ERROR) * self.first - slack)
        most = (1 + RATE_ERROR) * (self.told + following) + slack
        if most - least >= modulus:
            is_hopeless = 2 * RATE_ERROR * self.told >= modulus and following <= _QUIET * self.told
            return self.broken(self.newest) if is_hopeless else self
        difference = (self.newest - self.begun) % modulus
        exact = difference + modulus * max(0, ceil((least - difference) / modulus))
        if exact > most:
            # what the counter shows has moved for certain, however often it wrapped besides
            return Stretch(
                max(self.total, self.settled + difference),
                self.newest,
                self.newest,
                contradictions=self.contradictions + 1,
            )
        owed = min(max(0.0, self.owed + exact - self.told), (1 + RATE_ERROR) * following)
        return Stretch(
            self.settled + exact, self.newest, self.newest, owed=owed, contradictions=self.contradictions
        )
