"""How far apart samples are, and what to say where they aren't all the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.frame import Values

_WHOLE_SECOND = 0.05
"""A step this near to whole seconds, as a share of it, is one: clocks and scrapes are not exact."""
_HELD_UP_SECOND = 0.75
"""Between reads each second that are held up now and then, the others are this much shorter."""
_COARSER, _FINER = 1.5, 1 / 1.5
"""A series whose intervals are beyond these multiples of the step is on another step."""


def whole_step(intervals: Values) -> float | None:
    """The median of those intervals that are above 0, put to whole seconds where it is near; None: there is none."""
    rising = intervals[intervals > 0]
    if not len(rising):
        return None
    middle = float(np.median(rising))
    whole = float(round(middle))
    if whole and (abs(middle - whole) <= _WHOLE_SECOND * whole or _HELD_UP_SECOND <= middle < 1):
        return whole
    return max(round(middle, 3), 0.001)


def is_same_step(one: float, other: float) -> bool:
    """Whether two steps are the same but for how exact clocks are."""
    return abs(one - other) <= _WHOLE_SECOND * other


def resampled(found: float, step: float) -> str:
    """What to say of samples ``found`` seconds apart that were put on another step."""
    if found < step:
        return f"resampled from {found:g} s to {step:g} s: the last sample of each step"
    return f"samples are {found:g} s apart: on a step of {step:g} s there are gaps between them"


def mixed_steps(intervals: Sequence[Values], step: float) -> list[str]:
    """What to say of series that are on another step than most; ``intervals`` are those of each."""
    usual = np.array([np.median(each) for each in intervals])
    coarse, fine = usual[usual > _COARSER * step], usual[usual < _FINER * step]
    notes = []
    if len(coarse):
        notes.append(
            f"{len(coarse)} of {len(usual)} series come every {np.median(coarse):.3g} s: on the step of {step:g} s, "
            "that of most samples, there are gaps between theirs"
        )
    if len(fine):
        notes.append(
            f"{len(fine)} of {len(usual)} series come every {np.median(fine):.3g} s: of each step of {step:g} s the "
            "last sample was taken"
        )
    return notes
