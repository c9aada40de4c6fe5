"""What the pack has to reach, case by case, and what else may reach people with a cause: its consequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from alerts.alert import Severity
from alerts.causes import Cause
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

_PAIN = frozenset({Cause.SLO_MISSED, Cause.OVERLOAD})
"""Users wait, and more is asked for than is left to answer it: of all that takes capacity away."""
_THRASH = _PAIN | {Cause.RETRY_STORM, Cause.ORPHANS, Cause.PREFILL_BLOCKING, Cause.LONG_PROMPTS}
CONSEQUENCES: Mapping[Cause, frozenset[Cause]] = {
    Cause.SWAP_THRASH: _THRASH,
    Cause.RECOMPUTE_THRASH: _THRASH,
    Cause.OFFLOAD_THRASH: _THRASH | {Cause.RECOMPUTE_THRASH},
    Cause.RETRY_STORM: _PAIN,
    Cause.ORPHANS: _PAIN | {Cause.RETRY_STORM},
    Cause.PREFILL_BLOCKING: _PAIN | {Cause.LONG_PROMPTS},
    Cause.GPU_LOST: _PAIN | {Cause.ENGINE_DOWN},
    Cause.ENGINE_FROZEN: _PAIN | {Cause.PREFILL_BLOCKING},
    Cause.PREFIX_COLLAPSE: _PAIN
    | {Cause.RETRY_STORM},  # clients time out and ask again, and nothing else wakes of it
    Cause.COLLECTIVE_SLOW: _PAIN,
    Cause.KV_LEAK: _PAIN,
    Cause.TAIL_WASTE: _PAIN,
    Cause.OVERLOAD: _PAIN,
    Cause.LONG_PROMPTS: _PAIN,
    Cause.METRIC_RENAME: _PAIN,  # the upgrade takes an engine away for minutes
    Cause.GATEWAY_TOO_TIGHT: frozenset({Cause.OVERLOAD}),
    Cause.GATEWAY_BREAKER: frozenset({Cause.OVERLOAD}),
    Cause.GATEWAY_SLOW: frozenset({Cause.OVERLOAD}),
    Cause.ENGINE_DEADLOCKED: _PAIN,
    Cause.ENGINE_RESTARTS: _PAIN,
    Cause.RANK_IMBALANCE: _PAIN,
}
"""Causes of alerts that may reach somebody beside the own one: they say of themselves that they are a consequence."""
_QUIET = frozenset({Cause.OVERLOAD})
"""Where nothing is wrong a warning that says no more than that much is asked for is true."""
NOTHING_SEEN = Recorded((), 0.0, 0.0, None)
PEOPLE = frozenset({"page", "tell"})
"""Receivers behind whom there is somebody."""
_RIGHT: Mapping[Cause, frozenset[str]] = {
    Cause.SWAP_THRASH: frozenset({"KvSequencesSwapped"}),
    Cause.RECOMPUTE_THRASH: frozenset({"KvThrashing", "KvPingPong"}),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one case. ``missed``: the bars that it doesn't reach, in words.

    ``onset`` in seconds after the run's beginning, other times in seconds after the onset. ``first_page``: names of the
    first that somebody was woken with, and when. ``thrash``: first swap-in or repeat preemption. ``ever_slow``: first
    p99 TPOT above 2 s, whatever made it; ``slow``: the same from the first preemption on. ``silent``: fired and reached
    nobody. ``below``: its load is one that the objective is kept under.
    """

    title: str
    onset: float | None
    own: tuple[str, float] | None
    first_page: tuple[str, float] | None
    pages: int
    notified: int
    told: tuple[str, ...]
    silent: tuple[str, ...]
    thrash: float | None
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
    preempted = _first(truth, ("preemptions",))
    slow = None if preempted is None or thrash is None else _slow(recorded, max(zero, preempted))
    ever = _slow(recorded, zero)
    missed = _false_alerts(evaluated, told, causes)
    if below:
        missed += _kept(recorded, pages)
    elif not causes:
        missed += [f"pages {', '.join(each.names)} with nothing wrong" for each in pages]
    elif not own:
        missed.append("its own alert never fires")
    elif not told & {one.alert for one in own}:
        missed.append(f"its own alert, {own[0].alert}, reaches nobody")
    if truth["scenario"].startswith("incident") and thrash is not None:
        missed += _incident(causes, people, truth, (thrash, slow), ramp=ramp)
    return Verdict(
        title,
        None if onset is None else onset - begin,
        (own[0].alert, own[0].at - zero) if own else None,
        (", ".join(pages[0].names), pages[0].at - zero) if pages else None,
        len(pages),
        len(people),
        tuple(sorted(told)),
        tuple(sorted({one.alert for one in evaluated.fired} - told)),
        None if thrash is None else thrash - zero,
        None if slow is None else slow - zero,
        None if ever is None else ever - zero,
        below,
        recorded,
        tuple(missed),
    )


def _false_alerts(evaluated: Evaluated, told: set[str], causes: frozenset[Cause]) -> list[str]:
    """Of what reached somebody: what names another cause, and is no consequence of a true one."""
    may = causes.union(_QUIET if not causes else (), *(CONSEQUENCES.get(cause, ()) for cause in causes))
    named = {one.alert: Cause(one.labels["cause"]) for one in evaluated.fired}
    return [f"{name} tells of {named[name]}" for name in sorted(told) if named[name] not in may]


def _incident(
    causes: frozenset[Cause],
    people: Sequence[Notification],
    truth: Mapping[str, Any],
    times: tuple[float, float | None],
    *,
    ramp: bool,
) -> list[str]:
    """The bars of the incident: how soon, how long before tokens crawl, how often."""
    thrash, slow = times
    right = frozenset[str]().union(*(_RIGHT.get(cause, frozenset()) for cause in causes))
    paged = min(
        (each.at for each in people if each.receiver == "page" and right & set(each.names)), default=None
    )
    missed = _flaps(people, truth["end"])
    if paged is None:
        return [*missed, f"no page of {' or '.join(sorted(right))}"]
    if paged - thrash > PAGE_WITHIN_SECONDS:
        missed.append(f"the page comes {paged - thrash:.0f} s after the first swap-in or repeat preemption")
    if slow is not None and slow - paged < (LEAD_ON_A_RAMP_SECONDS if ramp else 0.0):
        missed.append(f"the page comes {slow - paged:.0f} s before p99 TPOT passes {SLOW_SECONDS:g} s")
    if len(people) > MOST_NOTIFICATIONS:
        missed.append(f"{len(people)} notifications")
    return missed


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
    late, budget = recorded.late_ratio, THRESHOLDS.slo_budget_ratio
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
