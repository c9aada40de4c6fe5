"""When answers are asked for: who scrapes comes at fixed intervals, so the next answer can be made beforehand."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Kind = TypeVar("Kind", bound=Hashable)

MOST_SCRAPERS = 4
"""Of one kind of answer. Of more than that, each for itself, some have to wait until theirs is made."""
MOST_KINDS = 16
SLACK_SECONDS = 0.1
"""By which a scrape may come earlier or later than the one before it."""


class Demand(Generic[Kind]):
    """Remembers when each kind of answer was asked for last."""

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: dict[Kind, tuple[float, ...]] = {}

    def note(self, kind: Kind, at: float) -> None:
        """One was asked for at ``at``, in seconds of any clock that doesn't jump."""
        times = self._asked.pop(kind, ())
        self._asked[kind] = (*times[-MOST_SCRAPERS:], at)
        if len(self._asked) > MOST_KINDS:
            del self._asked[next(iter(self._asked))]

    def expected(self, start: float, end: float) -> list[Kind]:
        """The kinds that will be asked for from ``start`` to ``end``, if the intervals stay what they were.

        Several who scrape take turns: each comes again after as long as the last one that came had been away.
        """
        return [
            kind
            for kind, times in self._asked.items()
            if any(
                start - SLACK_SECONDS <= times[-each] + times[-1] - times[-1 - each] <= end + SLACK_SECONDS
                for each in range(1, len(times))
            )
        ]
