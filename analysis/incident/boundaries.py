"""The outer ends of an incident: its first signs before any line is crossed, and when all is as it was again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analysis.frame import Frame
from analysis.incident.evidence import BRIDGE_SECONDS, Seen, away
from analysis.incident.phase import Boundary
from analysis.incident.spans import Span, spans
from analysis.robust import Scale

BACK_SECONDS = 600.0
"""How long before the first line is crossed signs are looked for."""
TOGETHER_SECONDS = 30.0
"""Signs that come within this time belong together: one measure alone may have its own reasons."""
_SOON_SECONDS = 10.0
SETTLED_SECONDS = 30.0
"""As usual for so long: settled."""
REST_SECONDS = 300.0
"""Within all lines for so long, and not as it was: it came to rest elsewhere."""
HOLE_NOTE = "a hole lies across it"


def first_signs(frame: Frame, calm: Sequence[tuple[Seen, Scale]], core: Span, floor: int) -> Boundary:
    """When measures began to be unlike what they were, up to the first line that was crossed.

    A sign counts from where it lasts into the core. The onset is the first that another follows within half a minute;
    it is as late as that other at most, and as early as the window over which the promptest of them is taken.
    """
    step = frame.step_seconds
    since = max(floor, core.begin - round(BACK_SECONDS / step))
    until = min(core.end, core.begin + round(TOGETHER_SECONDS / step))
    signs = []
    for each, scale in calm:
        mask = away(each, scale)[since:until]
        found = [
            span
            for span in spans(mask, round(BRIDGE_SECONDS / step))
            if span.end + since >= core.begin - round(BRIDGE_SECONDS / step)
        ]
        if found:
            signs.append((found[0].begin + since, each))
    signs += [
        (span.begin, each) for each, _ in calm for span in each.beyond if since <= span.begin <= core.begin
    ]
    signs.sort(key=lambda sign: sign[0])
    if not signs:
        at = float(frame.times[core.begin])
        return Boundary(at, at - step, at)
    together = round(TOGETHER_SECONDS / step)
    place = next(
        (
            number
            for number, (begin, each) in enumerate(signs)
            if any(
                later - begin <= together and other.measure is not each.measure
                for later, other in signs[number + 1 :]
            )
        ),
        len(signs) - 1,
    )
    begin, first = signs[place]
    second = next((later for later, each in signs[place + 1 :] if each.measure is not first.measure), begin)
    said_by = tuple(
        dict.fromkeys(each.measure.title for later, each in signs[place:] if later - begin <= together)
    )
    at = float(frame.times[begin])
    soon = round(_SOON_SECONDS / step)
    window = min(each.measure.window_seconds for later, each in signs[place:] if later - begin <= soon)
    return Boundary(at, at - max(step, window), float(frame.times[max(begin, second)]), said_by)


def settled(frame: Frame, calm: Sequence[tuple[Seen, Scale]], core: Span, ceiling: int) -> int | None:
    """The place from which on all is as usual for a while, or the next incident begins; None: not in this history.

    Load may have stayed higher, and what merely goes with it: only what is worse counts. Without anything that was
    usual the last line that was left has to do.
    """
    length = len(frame)
    if core.end >= length:
        return None
    if not calm:
        return core.end
    unwell = np.zeros(length, dtype=int)
    known = np.zeros(length, dtype=bool)
    for each, scale in calm:
        if each.measure.line is not None or each.measure.weight > 1:
            unwell += away(each, scale)
            known |= each.known
    well = (unwell <= 1) & known
    least = max(1, round(SETTLED_SECONDS / frame.step_seconds))
    for span in spans(well[core.end : ceiling]):
        if span.length >= least:
            return core.end + span.begin
    # within all lines, and not as it was
    return min(ceiling, core.end + round(REST_SECONDS / frame.step_seconds), length - 1)


def widened(frame: Frame, mark: Boundary, dark: Sequence[Span]) -> Boundary:
    """A boundary at the edge of a hole may lie anywhere in it."""
    step = frame.step_seconds
    for hole in dark:
        since, until = float(frame.times[hole.begin]) - step, float(frame.times[hole.end - 1]) + step
        if since - step <= mark.at <= until + TOGETHER_SECONDS:
            return replace(
                mark,
                earliest=min(mark.earliest, since),
                latest=max(mark.latest, min(until, mark.at)),
                note=HOLE_NOTE,
            )
    return mark
