"""What a pack made of a run, and of all of them: who was told, when, and whether there was anything to tell."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from alerts.alertmanager import PEOPLE
from alerts.causes import Cause
from tests.evaluation.evaluating import Fired
from tests.evaluation.paging import Notification

INCIDENT = "incident"


@dataclass(frozen=True, slots=True)
class Told:
    """What people were told first of a kind: ``names`` of the alerts, ``seconds`` after the onset."""

    names: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one pack and run. ``causes``: what is wrong in it; empty: nothing.

    ``first``: the first that somebody was told since the onset; ``page``: that woke somebody; ``named``: that names
    what is wrong. ``late``: what brought it about was over by then. ``false_pages`` and ``false_warnings``: told
    where nothing was wrong, or of what was so before. ``notified``: all that people got, all-clears included.
    ``lead``: seconds from ``first`` to the first swap-in or repeat preemption; None: nobody was told, or it never was.
    """

    pack: str
    run: str
    causes: tuple[str, ...]
    first: Told | None
    page: Told | None
    named: Told | None
    late: bool
    false_pages: int
    false_warnings: int
    notified: int
    lead: float | None

    @property
    def caught(self) -> bool:
        """Somebody was told."""
        return self.first is not None


@dataclass(frozen=True, slots=True)
class Heard:
    """What a pack made of a run: what fired, and what people got of it."""

    fired: Sequence[Fired]
    notifications: Sequence[Notification]


def outcome(
    title: tuple[str, str],
    truth: Mapping[str, Any],
    heard: Heard,
    names: Mapping[str, frozenset[Cause]],
    thrash_at: float | None,
) -> Outcome:
    """Of what people got. ``title``: of pack and run; ``names``: by alert, the causes that it tells.

    ``thrash_at``: when a sequence was first swapped in or preempted again, on the clock of the run. What held before
    the onset already would have been told without the fault: it is false, however late it comes.
    """
    causes = frozenset(Cause(episode["cause"]) for episode in truth["episodes"])
    onset: float | None = truth["onset"] if causes else None
    people = [each for each in heard.notifications if each.receiver in PEOPLE]
    news = [each for each in people if not each.all_clear]
    true = [] if onset is None else [each for each in news if _of_the_fault(each, onset, heard.fired)]
    false = [each for each in news if each not in true]

    def told(among: Sequence[Notification]) -> Told | None:
        zero = 0.0 if onset is None else onset
        first = min(among, key=lambda each: each.at, default=None)
        return None if first is None else Told(first.names, first.at - zero)

    first = told(true)
    return Outcome(
        *title,
        tuple(sorted(causes)),
        first,
        told([each for each in true if each.receiver == "page"]),
        told([each for each in true if any(names.get(name, frozenset()) & causes for name in each.names)]),
        first is not None and onset is not None and onset + first.seconds > truth["end"],
        sum(each.receiver == "page" for each in false),
        sum(each.receiver != "page" for each in false),
        len(people),
        None if first is None or thrash_at is None or onset is None else thrash_at - (onset + first.seconds),
    )


def _of_the_fault(told: Notification, onset: float, fired: Sequence[Fired]) -> bool:
    """Whether any of what it tells began after the onset."""
    about = [_without_cluster(labels) for labels in told.firing]
    return told.at >= onset and any(
        one.episode.active_at >= onset and one.at <= told.at and _without_cluster(one.labels) in about
        for one in fired
    )


def _without_cluster(labels: Mapping[str, str]) -> dict[str, str]:
    """Cases are kept apart as clusters on their way to people."""
    return {name: value for name, value in labels.items() if name != "cluster"}


@dataclass(frozen=True, slots=True)
class Total:
    """Of a pack over all runs. ``faults``: runs with something wrong; ``cannot_see``: those of them that it isn't for.

    ``in_time``: caught before what brought it about was over. ``incident_lead_seconds``: the median over the incident's
    seeds; None: in none of them was anybody told. ``incident_notifications``: the most in any of them.
    """

    false_pages: int
    false_warnings: int
    caught: int
    named: int
    in_time: int
    cannot_see: int
    faults: int
    seconds_to_first: float | None
    incident_lead_seconds: float | None
    incident_notifications: int


def total(outcomes: Sequence[Outcome], cannot_see: Mapping[Cause, str], incident: str = INCIDENT) -> Total:
    """Of the outcomes of one pack. ``incident``: how titles of the incident's runs as they are begin."""
    faults = [each for each in outcomes if each.causes]
    caught = [each for each in faults if each.caught]
    incidents = [each for each in outcomes if each.run.startswith(f"{incident}, seed ")]
    leads = [each.lead for each in incidents if each.lead is not None]
    return Total(
        sum(each.false_pages for each in outcomes),
        sum(each.false_warnings for each in outcomes),
        len(caught),
        sum(each.named is not None for each in caught),
        sum(not each.late for each in caught),
        sum(not each.caught and unseen(each, cannot_see) is not None for each in faults),
        len(faults),
        statistics.median(each.first.seconds for each in caught if each.first) if caught else None,
        statistics.median(leads) if leads else None,
        max((each.notified for each in incidents), default=0),
    )


def unseen(each: Outcome, cannot_see: Mapping[Cause, str]) -> str | None:
    """Why a pack can't see what is wrong in a run; None where it can see some of it."""
    reasons = [cannot_see.get(Cause(cause)) for cause in each.causes]
    return "; ".join(reason for reason in reasons if reason) if reasons and all(reasons) else None
