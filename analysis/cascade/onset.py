"""Since when a cause was at work: an estimate, from what shows it sooner than what proves it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.cascade.bends import bend
from analysis.cascade.stretches import stretches
from analysis.cascade.subject import Fleet, Subject
from analysis.cascade.template import Look, Start, Template
from analysis.frame import Values

_AFTER_SECONDS = 60.0
"""Beyond the proof a course may go on to move for the shape of its bend to be seen."""
_SKIPPED = 0.25
_CLEAR = 3.5
"""Spreads from which a bend is no chance; of several the first that a template names is taken."""


def onset(template: Template, fleet: Fleet, affected: Sequence[str], proof: float) -> float:
    """When a cause began, never later than ``proof``, its necessary evidence.

    The begin of a first sign that went on without a break until the proof; before it, or where there is none, the first
    clear bend of what the template names; else the strongest bend; else the proof itself.
    """
    subjects = [Subject(fleet, name) for name in affected] or [Subject(fleet)]
    times = fleet.frame.times
    if template.first_sign is not None:
        proof = min(proof, _begun(template.first_sign, subjects, proof))
    # a frame often begins where something else began: its first quarter is no part of what leads up to the proof
    first = max(proof - template.lead_seconds, fleet.frame.start + _SKIPPED * (proof - fleet.frame.start))
    bends = []
    for start in template.starts:
        course = _summed(start, subjects)
        found = None
        if course is not None:
            found = bend(times, course, first, proof + _AFTER_SECONDS)
        if found is not None and found.at <= proof:
            if found.strength >= _CLEAR:
                return found.at
            bends.append(found)
    if template.first_sign is not None or not bends:
        return proof
    return max(bends, key=lambda each: each.strength).at


def _begun(look: Look, subjects: Sequence[Subject], proof: float) -> float:
    since = [
        each.since
        for subject in subjects
        if (sign := look(subject)) is not None
        for each in stretches(
            subject.frame.times, sign.held, sign.known, subject.frame.step_seconds, subject.frame.step_seconds
        )
        if each.since <= proof <= each.until + sign.signal.window_seconds
    ]
    return min(since, default=proof)


def _summed(start: Start, subjects: Sequence[Subject]) -> Values | None:
    courses = [course for subject in subjects if (course := start.course(subject)) is not None]
    return None if not courses else np.asarray(np.sum(courses, axis=0), dtype=np.float64)
