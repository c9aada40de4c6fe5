"""Where a stream of numbered batches stands, and what the next number means."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Fate(enum.Enum):
    """What a batch is to a stream."""

    NEXT = "next"
    """The one that was waited for, or the first that is heard at all."""
    GAP = "gap"
    """Others should have come before it."""
    DUPLICATE = "duplicate"
    """It was here before."""
    RESTART = "restart"
    """Its publisher began anew: numbers start at 0 again."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """How far a stream has come.

    ``expected`` is the number that comes next, None before the first; ``newest_at`` the publisher's time of
    the newest batch.
    """

    expected: int | None = None
    newest_at: float = float("-inf")

    def fate(self, number: int, at: float | None, *, reconnected: bool = False) -> Fate:
        """What the batch ``number``, published ``at``, is; ``at`` None where it can't be read.

        A number that was here before is a duplicate (a replay tells of more than was missed) unless its time
        is newer than all before. Where the clock was set back too, a 0 after a new connection tells.
        """
        if self.expected is None or number == self.expected:
            return Fate.NEXT
        if number > self.expected:
            return Fate.GAP
        if (at is not None and at > self.newest_at) or (reconnected and number == 0):
            return Fate.RESTART
        return Fate.DUPLICATE

    def missing_before(self, number: int) -> int:
        """How many batches lie between the newest and ``number``."""
        return 0 if self.expected is None else max(0, number - self.expected)

    def after(self, number: int, at: float | None) -> Sequence:
        """The stream once the batch ``number`` is in."""
        return Sequence(number + 1, self.newest_at if at is None else at)
