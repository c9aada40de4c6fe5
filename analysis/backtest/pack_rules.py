"""The shipped alerts as a server is asked them, and which of them it can't be asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from alerts.alert import Alert, Expression
from alerts.pack_settings import PackSettings
from analysis.backtest.frames import rule_of
from analysis.backtest.outcome import Outcome
from analysis.backtest.rule_file import Asked, asked_of, lacking


def pack_rules(
    alerts: Iterable[Alert], settings: PackSettings, there: Collection[str], source: str
) -> tuple[tuple[Asked, ...], tuple[Outcome, ...]]:
    """Those that can be asked, and of the others why not.

    Comparisons are asked of the signals themselves, so that only what looks back over hours needs recorded series.
    """
    asked, left_out = [], []
    for alert in alerts:
        rendering = settings.rendering
        if not isinstance(alert.condition, Expression):
            rendering = replace(rendering, recorded=False)
        rule = rule_of(alert, settings)
        labels = (("cause", alert.cause.value), ("severity", rule.severity))
        each = asked_of(rule, alert.promql(rendering), labels)
        lacks = lacking(each, there)
        if lacks:
            left_out.append(Outcome(rule, not_said=f"{source} has no {', '.join(lacks)}"))
        else:
            asked.append(each)
    return tuple(asked), tuple(left_out)
