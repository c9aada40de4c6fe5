"""For how long something was so: stretches of instants, through short interruptions and through gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.frame import Values

Truth = NDArray[np.bool_]
MERGED_SECONDS = 45.0
"""An interruption that is shorter is none: a condition that flickers is one that goes on."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """From the first to past the last instant, in seconds of the frame's clock; ``held_seconds``: how much of it."""

    since: float
    until: float
    held_seconds: float


def stretches(
    times: Values, held: Truth, known: Truth, step_seconds: float, least_seconds: float
) -> tuple[Stretch, ...]:
    """Those that held for so long in all, in order. Arrays of shape (n,).

    What isn't known is no interruption, however long: nobody can say that it was over meanwhile.
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], held, [False]))))
    found: list[Stretch] = []
    for begin, end in edges.reshape(-1, 2):
        since, until = float(times[begin]), float(times[end - 1]) + step_seconds
        seconds = float(end - begin) * step_seconds
        last = found[-1] if found else None
        if last is not None:
            between = slice(int(np.searchsorted(times, last.until - 1e-6)), begin)
            denied = float(np.count_nonzero(known[between] & ~held[between])) * step_seconds
            if denied <= MERGED_SECONDS:
                found[-1] = Stretch(last.since, until, last.held_seconds + seconds)
                continue
        found.append(Stretch(since, until, seconds))
    return tuple(each for each in found if each.held_seconds >= least_seconds - 1e-6)
