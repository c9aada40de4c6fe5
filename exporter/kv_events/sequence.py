"""Where a stream of numbered batches stands, and what the next number means."""

from __future__ import annotations

import enum


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


NEXT = Fate.NEXT
"""As nearly always, so that it isn't looked up in the class each time, which Python 3.11 is slow at."""


class Sequence:
    """How far a stream has come.

    ``expected`` is the number that comes next, None before the first; ``newest_at`` the publisher's time of
    the newest batch.
    """

    __slots__ = ("expected", "newest_at")

    def __init__(self, expected: int | None = None) -> None:
        self.expected = expected
        self.newest_at = float("-inf")

    def fate(self, number: int, at: float | None, *, reconnected: bool = False) -> Fate:
        """What the batch ``number``, published ``at``, is; ``at`` None where it can't be read.

        A number that was here before is a duplicate (a replay tells of more than was missed) unless its time
        is newer than all before. Where the clock was set back too, a 0 after a new connection tells.
        """
        if self.expected is None or number == self.expected:
            return NEXT
        if number > self.expected:
            return Fate.GAP
        if (at is not None and at > self.newest_at) or (reconnected and number == 0):
            return Fate.RESTART
        return Fate.DUPLICATE

    def passed(self, number: int, at: float | None) -> int:
        """The batch ``number`` is in; gives how many batches lie between the newest before and it."""
        missing = 0 if self.expected is None else max(0, number - self.expected)
        self.expected = number + 1
        if at is not None:
            self.newest_at = at
        return missing
