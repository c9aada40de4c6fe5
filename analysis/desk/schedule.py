"""When a report is made anew while its incident goes on, and what of a long one it looks at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SELDOMEST_SECONDS = 3600.0
NEWS_SECONDS = 30.0
"""So much of what is new a report is to look at."""
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """As it is set on the desk; all in seconds.

    ``look_back``: of history before an incident's first alert; ``longest``: of the incident itself, from that alert on;
    ``again``: the soonest that a report is made anew while its incident goes on.
    """

    look_back: float
    longest: float
    again: float

    def looked_at(self, opened: float, now: float) -> tuple[float, float]:
        """From when to when a report looks that is made ``now``, of an incident that ``opened`` then.

        One that goes on for days is told by how it began: that is what a cause is found in.
        """
        return opened - self.look_back, min(now, opened + self.longest)

    def due(
        self, opened: float, reported: float | None, tried: float | None, joined: Sequence[float] = ()
    ) -> float:
        """When the next report of an incident that goes on is to be made; infinite: there is no more to look at.

        ``reported``: up to when the newest one looks; ``tried``: when one was begun last, whether it came or not. It is
        made anew once the incident has gone on for twice as long, and at least each hour. ``joined``: since when each
        further rule fires; what a report knows too little of is news, since a page would stand above what was true
        before it.
        """
        if reported is not None and reported >= opened + self.longest:
            return math.inf
        last = max(each for each in (opened, reported, tried) if each is not None)
        paced = last + max(min(last - opened, SELDOMEST_SECONDS), self.again)
        news = (each + NEWS_SECONDS for each in joined if each + NEWS_SECONDS > last)
        return min([paced, *news])
