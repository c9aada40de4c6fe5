"""The shipped alerts over a frame: the same trees of comparisons that the rules are made of, asked of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from alerts.alert import Alert, Expression, Severity
from alerts.conditions import Condition, readings
from alerts.pack_settings import PackSettings
from alerts.thresholds import Thresholds
from analysis.backtest.outcome import Alarm, Backtest, Outcome, Rule
from analysis.backtest.subjects import Subject, Subjects, series_name
from analysis.firing import Restoring, episodes
from analysis.history.history import History

NEEDS_A_SERVER = (
    "needs a server: it looks back over hours, at counters or at what isn't there, as PromQL alone can"
)


@dataclass(frozen=True, slots=True)
class Ups:
    """When the Prometheus that evaluates was started anew, in seconds, and what it restores then."""

    restarts: tuple[float, ...] = ()
    restoring: Restoring = field(default_factory=Restoring)


NEVER_RESTARTED = Ups()


def backtest(
    history: History,
    alerts: Iterable[Alert],
    settings: PackSettings,
    *,
    ups: Ups = NEVER_RESTARTED,
    progress: Callable[[str], None] = lambda _: None,
) -> Backtest:
    """Evaluate alerts at each instant of a history. What PromQL alone can say, and what isn't there, is told as such.

    ``progress`` is called with the name of each alert before it is asked.
    """
    frame = history.frame
    subjects = subjects_of(history, settings)
    outcomes = []
    for alert in alerts:
        progress(alert.name)
        outcomes.append(outcome(alert, subjects, settings, ups))
    return Backtest(
        history.source,
        frame.start,
        frame.end,
        frame.step_seconds,
        tuple(outcomes),
        settings.cluster_labels,
        (*history.notes, *_notes(settings)),
    )


def _notes(settings: PackSettings) -> tuple[str, ...]:
    """What a rule would have done otherwise."""
    if not settings.selector:
        return ()
    return (
        f"the pack's selector ({settings.selector}) is Prometheus's to apply: all series of the file were read",
    )


def subjects_of(history: History, settings: PackSettings) -> Subjects:
    """As the rules of these settings read the history."""
    return Subjects(
        history.frame,
        cluster_labels=settings.cluster_labels,
        lookback_seconds=settings.lookback_seconds,
    )


def rule_of(alert: Alert, settings: PackSettings) -> Rule:
    """An alert as a user's settings have it."""
    own = settings.of(alert.name)
    severity = own.severity or alert.severity
    tree = None if isinstance(alert.condition, Expression) else alert.condition
    return Rule(
        alert.name,
        severity.value,
        severity is Severity.PAGE,
        severity is Severity.INFO,
        alert.for_seconds if own.for_seconds is None else own.for_seconds,
        alert.keep_firing_seconds if own.keep_firing_seconds is None else own.keep_firing_seconds,
        tuple(dict.fromkeys(series_name(each) for each in readings(tree))) if tree is not None else (),
        alert.quiet_under,
        alert.consequence_of,
    )


def outcome(alert: Alert, subjects: Subjects, settings: PackSettings, ups: Ups) -> Outcome:
    """Of one alert."""
    rule = rule_of(alert, settings)
    if isinstance(alert.condition, Expression):
        return Outcome(rule, not_said=NEEDS_A_SERVER)
    lacks = subjects.missing(alert.condition)
    if lacks:
        return Outcome(rule, not_said=f"the history has no {', '.join(lacks)}")
    asked = list(subjects.of(alert.condition))
    return Outcome(rule, alarms(rule, alert.condition, asked, settings.thresholds, ups), len(asked))


def alarms(
    rule: Rule,
    condition: Condition,
    subjects: Sequence[Subject],
    thresholds: Thresholds,
    ups: Ups = NEVER_RESTARTED,
) -> tuple[Alarm, ...]:
    """Of a rule and a condition that may be other than what is shipped."""
    found = []
    for subject in subjects:
        times = subject.all.frame.times
        holds = np.broadcast_to(condition.holds(subject, thresholds), times.shape)
        if holds.any():
            labels = tuple((name, text) for name, text in subject.labels.items() if text)
            found += [
                Alarm(labels, each)
                for each in episodes(
                    times,
                    holds,
                    for_seconds=rule.for_seconds,
                    keep_firing_seconds=rule.keep_firing_seconds,
                    restarts=ups.restarts,
                    restoring=ups.restoring,
                )
            ]
    return tuple(found)
