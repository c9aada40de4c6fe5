"""A template held to a subject: which of its links held, since when, by how much; and what that makes of the cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from alerts.triage.numbers import of_signal, seconds
from analysis.cascade.stretches import Stretch, stretches
from analysis.cascade.subject import Subject
from analysis.cascade.template import Evidence, Link, Role, Sign, Template
from analysis.robust import scale

_NECESSARY_SCORE = 0.7
"""What all that is necessary is worth together; what supports it makes up the rest."""
_BASELINE_SECONDS = 60.0
"""Of what was before: less is no baseline."""
_SLACK_STEPS = 2
_LEAST_SAMPLES = 3
_SHARED = 0.5
_APART_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Judged:
    """One template on one subject. ``since``, ``until``: of its necessary links, None where one of them didn't hold.

    ``known``: the share of links that were watched.
    """

    template: Template
    subject: Subject
    score: float
    known: float
    evidence: tuple[Evidence, ...]
    since: float | None
    until: float | None


def judge(template: Template, subject: Subject, calm: Subject | None = None) -> Judged:
    """Hold it to a subject. ``calm``: the same subject in a frame in which all was well, for its baselines."""
    evidence: list[Evidence] = []
    previous: Evidence | None = None
    for link in template.links:
        evidence.append(found := _looked(link, subject, calm, previous))
        if found.held and link.role is not Role.AGAINST:
            previous = found
    necessary = [each for each in evidence if each.link.role is Role.NECESSARY]
    supporting = [each for each in evidence if each.link.role is Role.SUPPORTING]
    known = [each for each in evidence if each.held is not None]
    held = [each for each in necessary if each.held]
    weighed = [each for each in supporting if each.held is not None]
    support = sum(bool(each.held) for each in weighed) / len(weighed) if weighed else 0.0
    since = max((each.since for each in held if each.since is not None), default=None)
    until = min((each.until for each in held if each.until is not None), default=None)
    # what is necessary has to have held together, give or take the time that signals look back
    together = since is not None and until is not None and since <= until + _APART_SECONDS
    complete = together and len(held) == len(necessary)
    if not complete:
        since = until = None
    evidence = [_meanwhile(each, since, until) for each in evidence]
    score = _NECESSARY_SCORE + (1 - _NECESSARY_SCORE) * support if complete else 0.0
    for each in evidence:
        if each.held and each.link.role is Role.AGAINST:
            score *= 1 - each.link.weight
    return Judged(
        template,
        subject,
        score,
        len(known) / len(evidence),
        tuple(evidence),
        since,
        until,
    )


def _meanwhile(evidence: Evidence, since: float | None, until: float | None) -> Evidence:
    """What speaks against a cause has to hold while the cause is there; before and after it is another story."""
    if evidence.link.role is not Role.AGAINST or since is None or until is None:
        return evidence
    if evidence.since is None or evidence.until is None:
        return evidence
    shared = min(until, evidence.until) - max(since, evidence.since)
    if shared >= _SHARED * (until - since):
        return evidence
    return replace(evidence, held=False, words=f"Not at the same time: {evidence.link.words}.")


def _looked(link: Link, subject: Subject, calm: Subject | None, previous: Evidence | None) -> Evidence:
    sign = link.look(subject)
    if sign is None or not sign.known.any():
        return Evidence(link, None, f"Whether {link.words}: nobody watched it.")
    frame = subject.frame
    step = frame.step_seconds
    least = link.least_seconds
    if least > step:
        # of samples that are far apart one or two are a moment that was met by chance
        least = max(least, _LEAST_SAMPLES * step)
    found = stretches(frame.times, sign.held, sign.known, step, min(least, len(frame) * step))
    slack = sign.signal.window_seconds + _SLACK_STEPS * step
    if previous is not None and previous.since is not None and link.role is Role.SUPPORTING:
        least, most = link.lag_seconds
        begin, end = previous.since + least - slack, previous.since + most + slack
        found = tuple(each for each in found if each.until >= begin and each.since <= end)
    return _measured(link, sign, found, subject, calm)


def _measured(
    link: Link, sign: Sign, found: Sequence[Stretch], subject: Subject, calm: Subject | None
) -> Evidence:
    frame = subject.frame
    since = found[0].since if found else None
    usual = sign.values[frame.times < (since - _BASELINE_SECONDS if since is not None else np.inf)]
    if np.count_nonzero(~np.isnan(usual)) * frame.step_seconds < _BASELINE_SECONDS and since is not None:
        usual = sign.values[frame.times < since]
    quiet = link.look(calm) if calm is not None else None
    if quiet is not None:
        usual = quiet.values
    within = sign.values[sign.held] if found else sign.values
    within = within[~np.isnan(within)]
    worst = None
    if len(within):
        worst = float(within.min() if sign.falls else within.max())
    norm = scale(usual)
    z = None if norm is None or worst is None else float(norm.z(np.array([worst]))[0])
    evidence = Evidence(
        link,
        bool(found),
        "",
        sign.signal,
        sign.told_as,
        since,
        found[-1].until if found else None,
        sum(each.held_seconds for each in found),
        None if norm is None else norm.middle,
        worst,
        z,
        sign.limit,
    )
    return replace(evidence, words=_words(evidence))


def _words(evidence: Evidence) -> str:
    name = evidence.name

    def told(value: float) -> str:
        return of_signal(name, value)

    numbers = []
    if evidence.worst is not None:
        numbers.append(f"{'at worst ' if evidence.held else ''}{told(evidence.worst)}")
    if evidence.baseline is not None:
        numbers.append(f"usually {told(evidence.baseline)}")
    if evidence.threshold is not None:
        numbers.append(f"the line is {told(evidence.threshold)}")
    inside = f" ({name}: {', '.join(numbers)})" if numbers else ""
    clause = evidence.link.words[0].upper() + evidence.link.words[1:]
    if not evidence.held:
        return f"Not seen: {evidence.link.words}{inside}."
    return f"{clause} for {seconds(evidence.seconds)}{inside}."
