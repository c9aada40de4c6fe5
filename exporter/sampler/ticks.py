"""When something is due that is due again and again: fixed ticks, of which those missed are skipped."""

from __future__ import annotations

import math


def next_tick(due: float, seconds: float, now: float) -> float:
    """The first tick after ``now`` of those ``seconds`` apart, one of which is ``due``.

    Never in the past: what was missed is not caught up with.
    """
    if now < due:
        return due
    return due + (math.floor((now - due) / seconds) + 1) * seconds
