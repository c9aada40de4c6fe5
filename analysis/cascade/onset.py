"""Since when a cause was at work: an estimate, from what shows it sooner than what proves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analysis.cascade.bends import Bend, bend
from analysis.cascade.subject import Fleet, Subject
from analysis.cascade.template import Look, Sign, Start, Template
from analysis.cascade.together import Course, bend_of_all
from analysis.frame import Frame, Values

_SAME_SECONDS = 1e-3
_AFTER_SECONDS = 60.0
"""Beyond the proof a course may go on to move for the shape of its bend to be seen."""
_SKIPPED = 0.25
_CLEAR = 3.5
"""Spreads from which a bend is no chance."""


def onset(template: Template, fleet: Fleet, affected: Sequence[str], proof: float) -> float:
    """When a cause began, never later than ``proof``, its necessary evidence.

    The begin of a first sign that went on without a break until the proof; before it, or where there is none, where
    what the template names begins to move, all of it together; of a load the middle of three ways to look for that;
    else the proof itself.
    """
    subjects = [Subject(fleet, name) for name in affected] or [Subject(fleet)]
    times = fleet.frame.times
    if template.first_sign is not None:
        proof = min(proof, _begun(template.first_sign, subjects, proof))
        proof -= _patience(template, subjects[0], proof)
    # a frame often begins where something else began: its first quarter is no part of what leads up to the proof
    first = max(proof - template.lead_seconds, fleet.frame.start + _SKIPPED * (proof - fleet.frame.start))
    last = proof + _AFTER_SECONDS
    courses = _courses(template.starts, subjects)
    found = bend_of_all(times, courses, first, last, proof)
    if found is None or (template.first_sign is not None and found.strength < _CLEAR):
        return proof
    if not template.in_order:
        return min(found.at, proof)
    # each of these is led astray by something else: by a load that grew before, or by one that comes and goes
    plain = bend_of_all(times, [replace(each, counted=False) for each in courses], first, last, proof)
    alone = _first_clear(times, _courses(template.in_order, subjects), (first, last), proof)
    opinions = [found.at, *(each.at for each in (plain, alone) if each is not None)]
    return min(float(np.median(opinions)), proof)


def _courses(starts: Sequence[Start], subjects: Sequence[Subject]) -> list[Course]:
    return [
        Course(values, start.way, start.counted, start.signal.window_seconds if start.is_mean else 0.0)
        for start in starts
        if (values := _summed(start, subjects)) is not None
    ]


def _first_clear(
    times: Values, courses: Sequence[Course], within: tuple[float, float], proof: float
) -> Bend | None:
    """The first that bends clearly before the proof, else the one that does so most."""
    found = [each for course in courses if (each := bend(times, course.values, *within)) is not None]
    before = [each for each in found if each.at <= proof]
    clear = (each for each in before if each.strength >= _CLEAR)
    return next(clear, None) or max(before, key=lambda each: each.strength, default=None)


def _begun(look: Look, subjects: Sequence[Subject], proof: float) -> float:
    signs = [(subject, sign) for subject in subjects if (sign := look(subject)) is not None]
    return min((_since(sign, subject.frame, proof) for subject, sign in signs), default=proof)


def _since(sign: Sign, frame: Frame, proof: float) -> float:
    """The begin of what held without a break until the proof; the proof where nothing did.

    What isn't known is no break, and a signal of a trailing time may have ended so long ago.
    """
    place = int(np.searchsorted(frame.times, proof + _SAME_SECONDS)) - 1
    slack = round(sign.signal.window_seconds / frame.step_seconds) + 1
    held = np.flatnonzero(sign.held[: place + 1])
    if not len(held) or held[-1] < place - slack:
        return proof
    broken = np.flatnonzero(sign.known[: held[-1]] & ~sign.held[: held[-1]])
    last = int(broken[-1]) if len(broken) else -1
    return float(frame.times[held[np.searchsorted(held, last)]])


def _patience(template: Template, subject: Subject, at: float) -> float:
    told = None if template.patience is None else template.patience(subject)
    if told is None:
        return 0.0
    until = int(np.searchsorted(subject.frame.times, at + _SAME_SECONDS))
    known = told[:until][~np.isnan(told[:until])]
    return float(known[-1]) if len(known) else 0.0


def _summed(start: Start, subjects: Sequence[Subject]) -> Values | None:
    courses = [course for subject in subjects if (course := start.course(subject)) is not None]
    return None if not courses else np.asarray(np.sum(courses, axis=0), dtype=np.float64)
