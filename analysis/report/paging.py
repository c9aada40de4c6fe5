"""What would have paged: the shipped alerts over the history, as Prometheus and Alertmanager would have had them."""

from __future__ import annotations

from collections.abc import Sequence

from alerts.alert import Severity
from alerts.catalogue import ALERTS
from alerts.pack_settings import PackSettings
from alerts.runbooks import runbook_url
from analysis.backtest.frames import backtest
from analysis.backtest.outcome import Backtest, notices
from analysis.frame import Frame
from analysis.history.history import History
from analysis.incident.timeline import Fired
from analysis.report.report import Page

EVERY_SECONDS = 15.0
"""How often rules are evaluated."""


def tried(history: History) -> Backtest:
    """All alerts, evaluated every 15 s, or at each instant of a history that has fewer."""
    frame = history.frame
    places = max(1, round(EVERY_SECONDS / frame.step_seconds))
    thinned = Frame(frame.times[::places], frame.step_seconds * places, frame.keys, frame.values[::places])
    return backtest(
        History(thinned, history.source, history.derived, history.notes), ALERTS.values(), PackSettings()
    )


def untested(tested: Backtest) -> tuple[str, ...]:
    """Alerts of which nothing is known, and why."""
    return tuple(f"{each.rule.name}: {each.not_said}" for each in tested.outcomes if each.not_said)


def fired(tested: Backtest) -> tuple[Fired, ...]:
    """As they would have been told, one each time."""
    return tuple(
        Fired(
            each.rule.name,
            Severity(each.rule.severity),
            each.at,
            each.until if each.until < tested.end else None,
            "",
        )
        for each in notices(tested)
    )


def pages(told: Sequence[Fired], begin: float, since: float, until: float) -> tuple[Page, ...]:
    """Of an incident that began at ``begin``: those that were told between two instants, in order."""
    return tuple(
        Page(
            each.name,
            each.severity.value,
            each.severity is Severity.PAGE,
            ALERTS[each.name].cause,
            each.at,
            until if each.ended_at is None else each.ended_at,
            each.at - begin,
            runbook_url(ALERTS[each.name]),
        )
        for each in told
        if since <= each.at < until
    )
