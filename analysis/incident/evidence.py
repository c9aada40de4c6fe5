"""What a subject's measures say, instant by instant: beyond a line, away from what was usual, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from alerts.thresholds import Thresholds
from analysis.frame import Values
from analysis.incident.measures import MEASURES, Measure
from analysis.incident.spans import Mask, Span, spans
from analysis.incident.subject import Subject
from analysis.incident.unit import Unit
from analysis.robust import Scale, scale

UNUSUAL_SPREADS = 5.0
"""How far from the middle is unusual: some of a thousand values of a normal distribution are more than 3 away."""
UNUSUAL_SHARE = 0.25
"""And by how much of what is usual at least: a constant's next digit is no event."""
LEAST: Mapping[Unit, float] = {Unit.RATIO: 0.05, Unit.COUNT: 3.0, Unit.PER_SECOND: 0.05}
"""And so much at least, where nothing at all is usual: the first request that is late, or waits, is no sign."""
BRIDGE_SECONDS = 20.0
"""What goes back and comes again within this time never went."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A measure of a subject. ``values``: shape (n,), NaN where not known. ``beyond``: spans beyond its line."""

    measure: Measure
    values: Values
    beyond: tuple[Span, ...]

    @property
    def known(self) -> Mask:
        """Where there is a value."""
        return ~np.isnan(self.values)


def seen(
    subject: Subject, thresholds: Thresholds, measures: Sequence[Measure] = MEASURES
) -> tuple[Seen, ...]:
    """All measures that say anything of a subject."""
    step = subject.frame.step_seconds
    found = []
    for measure in measures:
        values = measure.read(subject)
        if np.isnan(values).all():
            continue
        line = measure.limit(thresholds)
        beyond: tuple[Span, ...] = ()
        if line is not None:
            mask = values < line if measure.worse < 0 else values > line
            least = max(1, round(measure.holds_seconds / step))
            beyond = spans(mask, round(BRIDGE_SECONDS / step), least)
        found.append(Seen(measure, values, beyond))
    return tuple(found)


def usual(each: Seen, calm: Span) -> Scale | None:
    """What a measure was while all was well; None where it isn't known."""
    return scale(each.values[calm.begin : calm.end])


def away(each: Seen, calm: Scale) -> Mask:
    """Where a measure is unusually far on its worse side, or on either where neither is worse; shape (n,)."""
    distance = each.values - calm.middle
    least = LEAST.get(each.measure.unit, 0.0)
    far = max(UNUSUAL_SPREADS * calm.spread, UNUSUAL_SHARE * abs(calm.middle), least)
    if each.measure.worse > 0:
        return np.asarray(distance > far, dtype=bool)
    if each.measure.worse < 0:
        return np.asarray(-distance > min(far, _MOST_FALL * abs(calm.middle)), dtype=bool)
    return np.asarray(np.abs(distance) > far, dtype=bool)


_MOST_FALL = 0.6
"""What can't go below 0 can't fall by five spreads: so much of it is unusual all the same."""
