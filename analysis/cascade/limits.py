"""What wasn't known, and what that costs: holes in history, and what nobody watched."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from alerts.triage.numbers import seconds
from analysis.cascade.stretches import Truth
from analysis.cascade.subject import Fleet
from analysis.cascade.template import Role, Verdict

LEAST_HOLE_SECONDS = 15.0
"""A scrape or two that failed are no hole."""
_LEAST_HOLE_STEPS = 3
_NEAR_SECONDS = 60.0
Hole = tuple[float, float]
"""From the last instant before it to the first after it."""


def holes(fleet: Fleet, engines: Sequence[str]) -> tuple[Hole, ...]:
    """When nothing was told of these engines, of anything where none is named; in order."""
    known = _told(fleet, engines)
    times, step = fleet.frame.times, fleet.frame.step_seconds
    places = np.flatnonzero(known)
    least = max(LEAST_HOLE_SECONDS, _LEAST_HOLE_STEPS * step)
    return tuple(
        (float(times[one]), float(times[other]))
        for one, other in pairwise(places)
        if times[other] - times[one] > least
    )


def of_holes(fleet: Fleet, engines: Sequence[str], onset: float, proven: float) -> tuple[str, ...]:
    """What a verdict has to say of holes while its cause came about."""
    return tuple(
        f"For {seconds(end - begin)} until {_after(fleet, end)} nothing is known of"
        f" {', '.join(engines) or 'the fleet'}: it may have begun in there."
        for begin, end in holes(fleet, engines)
        if begin <= proven and end >= onset - _NEAR_SECONDS
    )


def of_watching(fleet: Fleet) -> tuple[str, ...]:
    """What a ranking has to say of what nobody watched."""
    told = []
    if not fleet.engines:
        told.append("No engine was watched: nothing is known of what was asked of them and what they did.")
    if not fleet.uuids:
        told.append("No GPU was watched: lost GPUs, PCIe and collectives can't be causes here.")
    if not fleet.gateways:
        told.append(
            "No gateway was watched: retries, orphans and limits of the gateway can't be causes here."
        )
    for begin, end in holes(fleet, ()):
        told.append(f"For {seconds(end - begin)} until {_after(fleet, end)} nothing at all is known.")
    return tuple(told)


def behind(names: Sequence[str]) -> tuple[str, ...]:
    """What may be behind a cause and was not watched; at least one name."""
    return (f"Whether {_listed(names)} is behind it nobody watched.",)


def is_unwatched(verdict: Verdict) -> bool:
    """Whether a link that a cause can't do without could not be looked at."""
    return any(each.held is None for each in verdict.evidence if each.link.role is Role.NECESSARY)


def _told(fleet: Fleet, engines: Sequence[str]) -> Truth:
    frame = fleet.frame
    wanted = set(engines)
    places = [
        place
        for place, key in enumerate(frame.keys)
        if not wanted or key.label("engine") in wanted or key.label("source") in wanted
    ]
    known = np.zeros(len(frame), dtype=bool)
    for place in places:
        known |= ~np.isnan(frame.values[:, place])
        if known.all():
            break
    return known


def _after(fleet: Fleet, at: float) -> str:
    return f"{seconds(at - fleet.frame.start)} into the history"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
