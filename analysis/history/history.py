"""What was read of the past: one frame, where it is from, and what has to be said of it."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.frame import Frame


class HistoryError(Exception):
    """History that can't be read: one line of what was wrong, where, and what to do."""


@dataclass(frozen=True, slots=True)
class History:
    """One frame and its story. ``source``: as the user gave it, without secrets.

    ``derived``: names of signals that no sidecar kept and that were derived from the engines' own series. ``notes``:
    one line each of what is missing, doubtful or was left out; whoever shows a result shows them.
    """

    frame: Frame
    source: str
    derived: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
