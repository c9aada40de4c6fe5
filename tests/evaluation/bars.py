"""What the pack has to reach, case by case.

What else may reach people than an alert of what is wrong: what the pack itself calls a consequence of it, where that
fired too (``alerts/explanations.py``); that an objective is missed, where the recording says so; and a warning that
much is asked for, which claims no fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from alerts.alert import Severity
from alerts.alertmanager import PEOPLE
from alerts.catalogue import ALERTS
from alerts.causes import Cause
from alerts.explanations import explained
from alerts.thresholds import THRESHOLDS
from tests.evaluation.evaluating import Evaluated
from tests.evaluation.live_figures import (
    LEAD_ON_A_RAMP_SECONDS,
    MOST_NOTIFICATIONS,
    PAGE_WITHIN_SECONDS,
    SLOW_SECONDS,
)
from tests.evaluation.paging import Notification
from tests.evaluation.recorded import Recorded

NOTHING_SEEN = Recorded((), 0.0, 0.0, {})
_RIGHT: Mapping[Cause, frozenset[str]] = {
    Cause.SWAP_THRASH: frozenset({"KvSequencesSwapped"}),
    Cause.RECOMPUTE_THRASH: frozenset({"KvThrashing", "KvPingPong"}),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one case. ``missed``: the bars that it doesn't reach, in words.

    ``onset`` in seconds after the run's beginning, other times in seconds after the onset. ``first_page``: names of the
    first that somebody was woken with, and when; ``right_page``: the first that names what is wrong, of an incident,
    and ``lead``: seconds that it has to come before tokens crawl. ``thrash``: first swap-in or repeat preemption;
    ``preempted``: first preemption. ``ever_slow``: first p99 TPOT above 2 s, whatever made it, which is what the bar
    says; ``slow``: the same from the first preemption on, which is what that page can be about. ``silent``: fired and
    reached nobody. ``below``: its load is one that the objective is kept under.
    """

    title: str
    onset: float | None
    own: tuple[str, float] | None
    first_page: tuple[str, float] | None
    pages: int
    notified: int
    told: tuple[str, ...]
    silent: tuple[str, ...]
    right_page: float | None
    lead: float
    thrash: float | None
    preempted: float | None
    slow: float | None
    ever_slow: float | None
    below: bool
    recorded: Recorded
    missed: tuple[str, ...]


def judge(  # noqa: PLR0913 -- what a case is, what was seen of it, and which bars are for it
    title: str,
    truth: Mapping[str, Any],
    evaluated: Evaluated,
    got: Sequence[Notification],
    recorded: Recorded = NOTHING_SEEN,
    *,
    ramp: bool = False,
    below: bool = False,
) -> Verdict:
    """Hold a case to its bars.

    ``ramp``: its load rises slowly, so that there is something to see beforehand. ``below``: its load is high, and the
    objective is kept: nobody is to be woken, and it may go unsaid.
    """
    causes = frozenset(Cause(episode["cause"]) for episode in truth["episodes"])
    begin: float = truth["seconds"][0]
    onset: float | None = truth["onset"]
    zero = begin if onset is None else onset
    people = [each for each in got if each.receiver in PEOPLE]
    pages = [each for each in people if each.receiver == "page" and not each.all_clear]
    told = {name for each in people for name in each.names}
    own = [
        one
        for one in evaluated.fired
        if one.labels["cause"] in causes and one.labels["severity"] != Severity.INFO and one.at >= zero
    ]
    own = [one for one in own if one.alert in told] or own
    thrash = _first_thrash(truth)
    preempted = None if thrash is None else _first(truth, ("preemptions",))
    slow = None if preempted is None else _slow(recorded, max(zero, preempted))
    ever = _slow(recorded, zero)
    missed = _false_alerts(evaluated, people, causes, ever is not None, recorded)
    if below:
        missed += _kept(recorded, pages)
    elif not causes:
        missed += [f"pages {', '.join(each.names)} with nothing wrong" for each in pages]
    elif not own:
        missed.append("its own alert never fires")
    elif not told & {one.alert for one in own}:
        missed.append(f"its own alert, {own[0].alert}, reaches nobody")
    right = None
    lead = LEAD_ON_A_RAMP_SECONDS if ramp else 0.0
    if truth["scenario"].startswith("incident") and thrash is not None:
        right = _right_page(causes, people)
        missed += _incident(people, truth["end"], right, _Times(zero, thrash, preempted, ever), lead)
    return Verdict(
        title,
        None if onset is None else onset - begin,
        (own[0].alert, own[0].at - zero) if own else None,
        (", ".join(pages[0].names), pages[0].at - zero) if pages else None,
        len(pages),
        len(people),
        tuple(sorted(told)),
        tuple(sorted({one.alert for one in evaluated.fired} - told)),
        None if right is None else right - zero,
        lead,
        None if thrash is None else thrash - zero,
        None if preempted is None else preempted - zero,
        None if slow is None else slow - zero,
        None if ever is None else ever - zero,
        below,
        recorded,
        tuple(missed),
    )


def _false_alerts(
    evaluated: Evaluated,
    people: Sequence[Notification],
    causes: frozenset[Cause],
    slow: bool,  # noqa: FBT001 -- whether tokens ever crawled
    recorded: Recorded,
) -> list[str]:
    """Of what reached somebody: what names another cause, isn't explained by a true one, and isn't true by itself."""
    true = [_subject(labels) for labels in explained([one.labels for one in evaluated.fired], causes, ALERTS)]
    told = {_subject(labels) for each in people for labels in each.firing}
    false = set()
    for subject in told - set(true):
        labels = dict(subject)
        alert = ALERTS[labels["alertname"]]
        much = alert.cause is Cause.OVERLOAD and alert.severity is Severity.WARNING
        felt = alert.cause is Cause.SLO_MISSED and (
            _missed(recorded, labels["slo"]) if "slo" in labels else slow
        )
        if not much and not felt:
            false.add(f"{alert.name} tells of {alert.cause}")
    return sorted(false)


def _subject(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What tells one that fired from another, but for the cluster, which is the case's."""
    return tuple(sorted((name, value) for name, value in labels.items() if name != "cluster"))


def _missed(recorded: Recorded, slo: str) -> bool:
    return recorded.late_ratios.get(slo, 0.0) > THRESHOLDS.slo_budget_ratio


def _right_page(causes: frozenset[Cause], people: Sequence[Notification]) -> float | None:
    """When somebody is first woken with what is wrong."""
    right = frozenset[str]().union(*(_RIGHT.get(cause, frozenset()) for cause in causes))
    return min(
        (each.at for each in people if each.receiver == "page" and right & set(each.names)), default=None
    )


@dataclass(frozen=True, slots=True)
class _Times:
    """On the clock of the run. See Verdict."""

    onset: float
    thrash: float
    preempted: float | None
    ever_slow: float | None


def _incident(
    people: Sequence[Notification], end: float, paged: float | None, times: _Times, lead: float
) -> list[str]:
    """The bars of the incident, to the letter: how soon, how long before tokens crawl, how often."""
    missed = _flaps(people, end)
    if paged is None:
        return [*missed, "no page of what is wrong"]
    if paged - times.thrash > PAGE_WITHIN_SECONDS:
        missed.append(
            f"the page comes {paged - times.thrash:.0f} s after the first swap-in or repeat preemption"
        )
    slow = times.ever_slow
    if slow is not None and slow - paged < lead:
        missed.append(
            f"{_relative(slow - paged)} p99 TPOT first passes {SLOW_SECONDS:g} s, {slow - times.onset:.0f} s"
            f" after the onset{_why(times)}"
        )
    if len(people) > MOST_NOTIFICATIONS:
        missed.append(f"{len(people)} notifications")
    return missed


def _relative(ahead: float) -> str:
    return f"the page comes {abs(ahead):.0f} s {'before' if ahead >= 0 else 'after'}"


def _why(times: _Times) -> str:
    """Why tokens crawl before a rule about preemption can know."""
    slow, preempted = times.ever_slow, times.preempted
    if slow is None or preempted is None or slow >= preempted:
        return ""
    return f": prefills hold up decodes {preempted - slow:.0f} s before anything is preempted"


def _first(truth: Mapping[str, Any], columns: Sequence[str]) -> float | None:
    return min(
        (
            at
            for engine in truth["engines"].values()
            for column in columns
            for at, value in zip(truth["seconds"], engine[column], strict=True)
            if value
        ),
        default=None,
    )


def _first_thrash(truth: Mapping[str, Any]) -> float | None:
    """When a sequence was first swapped in, or preempted again within 30 s, on any engine."""
    return _first(truth, ("swap_in_bytes", "repeat_preemptions_30s"))


def _slow(recorded: Recorded, since: float) -> float | None:
    return next((at for at in recorded.slow if at >= since), None)


def _kept(recorded: Recorded, pages: Sequence[Notification]) -> list[str]:
    """Of high load under which the objective is kept: that it is both, and nobody is woken."""
    late, budget = recorded.late_ratios.get("ttft"), THRESHOLDS.slo_budget_ratio
    missed = [f"pages {', '.join(each.names)} though the objective is kept" for each in pages]
    if late is None or late > budget:
        missed.append(f"its load is to keep the objective, and late are {late}")
    if recorded.usage_ratio < THRESHOLDS.kv_usage_full_ratio:
        missed.append(f"its load is to fill pools, and they are {recorded.usage_ratio:.2f} full at most")
    return missed


def _flaps(people: Sequence[Notification], end: float) -> list[str]:
    """All-clears of pages before the end that were taken back."""
    found = []
    for place, each in enumerate(people):
        names = {labels["alertname"] for labels in each.resolved}
        later = [more for more in people[place + 1 :] if names & set(more.names) and more.at < end]
        if each.receiver == "page" and each.all_clear and later:
            found.append(f"the all-clear of {', '.join(sorted(names))} is taken back")
    return found
