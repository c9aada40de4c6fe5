"""Bytes that a link of a GPU carries one way: our own total, its rate and its peak.

PCIe and NVLink have it in common. Nothing here is looked up in a window: each new reading adds one
interval to what is remembered of the trailing minute, which is all that a cycle has to pay for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from exporter.signal import PEAK_SECONDS
from exporter.window import LONGEST_GAP_SECONDS, MERGE_BELOW_SECONDS, START_SLACK_SECONDS

RATE_SECONDS = 10.0
"""What a rate is the mean of: as long as that of the engine's swap, so that the two can be compared."""


class Reading(NamedTuple):
    """What was read of one direction at ``at``: a running total, or else the bytes a second of now.

    ``source`` is who counts: totals of two sources have nothing to do with each other.
    ``untold_total`` counts intervals, so far, whose bytes are in no total.
    """

    at: float
    source: str
    bytes_total: float | None = None
    bytes_per_second: float | None = None
    untold_total: float = 0.0

    @property
    def known(self) -> bool:
        """Whether it tells anything."""
        told = self.bytes_per_second if self.bytes_total is None else self.bytes_total
        return told is not None and 0.0 <= told < math.inf

    def moved_since(self, earlier: Reading) -> float | None:
        """Bytes since ``earlier``; None where the two don't belong together, or the total fell.

        A rate is that of the time up to its reading, but of no time in which nobody looked.
        """
        if self.source != earlier.source:
            return None
        if self.bytes_total is None or earlier.bytes_total is None:
            seconds = self.at - earlier.at
            rates_alone = self.bytes_total is None and earlier.bytes_total is None
            if self.bytes_per_second is None or not rates_alone or seconds > LONGEST_GAP_SECONDS:
                return None
            return self.bytes_per_second * seconds
        moved = self.bytes_total - earlier.bytes_total
        return moved if moved >= 0.0 else None


class Interval(NamedTuple):
    """Bytes a second from ``began_at`` to ``at``, and the bytes and seconds of all intervals before it."""

    began_at: float
    at: float
    per_second: float
    bytes_before: float
    seconds_before: float


class Flow(NamedTuple):
    """One direction: all bytes since the first reading, and what its rates were.

    ``since`` is the reading that the next interval begins with and ``since_total`` the total then. The
    total takes in every rise; ``intervals``, those of the trailing 10 s, lack what can't be told: across a
    restart, a change of source or a gap, or where some of the bytes are in no total. ``highest`` are the
    intervals of the trailing minute that no later one exceeds, so that the first is always the peak.
    ``told_bytes`` and ``told_seconds`` are those of all intervals so far: what a rate has to look at are
    two of them, however many there are.
    """

    total: float = 0.0
    newest: Reading | None = None
    since: Reading | None = None
    since_total: float = 0.0
    began_at: float | None = None
    told_bytes: float = 0.0
    told_seconds: float = 0.0
    intervals: tuple[Interval, ...] = ()
    highest: tuple[Interval, ...] = ()

    def after(self, now: Reading, *, restarted: bool) -> Flow:
        """The flow after a new reading; one that tells nothing is as if it had not been.

        Nor does one that was told before: a link that is read every few seconds and told of each second did not
        stand still in between.
        """
        is_new = self.newest is None or now.at > self.newest.at
        if not (now.known and is_new):
            return self.cut() if restarted else self
        total, before, since, since_total, began_at, told_bytes, told_seconds, intervals, highest = self
        if began_at is None:
            began_at = now.at
        moved = None if before is None or restarted else now.moved_since(before)
        if moved is None or since is None:
            told = (told_bytes, told_seconds, intervals, highest)
            return Flow(total, now, now, total, began_at, *told)
        total += moved
        seconds = now.at - since.at
        if seconds < MERGE_BELOW_SECONDS:
            told = (told_bytes, told_seconds, intervals, highest)
            return Flow(total, now, since, since_total, began_at, *told)
        if seconds <= LONGEST_GAP_SECONDS and now.untold_total == since.untold_total:
            moved = total - since_total
            newest = Interval(since.at, now.at, moved / seconds, told_bytes, told_seconds)
            told_bytes, told_seconds = told_bytes + moved, told_seconds + seconds
            while highest and highest[-1].per_second <= newest.per_second:
                highest = highest[:-1]
            intervals, highest = (*intervals, newest), (*highest, newest)
        oldest = now.at - RATE_SECONDS - START_SLACK_SECONDS
        while intervals and intervals[0].began_at < oldest:
            intervals = intervals[1:]
        while highest and highest[0].at <= now.at - PEAK_SECONDS:
            highest = highest[1:]
        return Flow(total, now, now, total, began_at, told_bytes, told_seconds, intervals, highest)

    def cut(self) -> Flow:
        """The flow once what its newest reading would be compared with has gone."""
        return self._replace(newest=None, since=None)

    def told_at(self, at: float) -> bool:
        """Whether its newest reading is of ``at``."""
        return self.newest is not None and self.newest.at == at

    @property
    def per_second(self) -> float | None:
        """The mean rate of the trailing 10 s; None where less than half of them can be told."""
        if self.newest is None or self.began_at is None:
            return None
        start = self.newest.at - RATE_SECONDS
        if self.began_at > start + START_SLACK_SECONDS:
            return None
        for first in self.intervals:
            if first.began_at >= start - START_SLACK_SECONDS:
                covered = self.told_seconds - first.seconds_before
                moved = self.told_bytes - first.bytes_before
                return moved / covered if covered >= 0.5 * RATE_SECONDS else None
        return None

    @property
    def peak(self) -> float | None:
        """The largest rate of an interval of the trailing minute, or of what there is of it."""
        return self.highest[0].per_second if self.highest else None
