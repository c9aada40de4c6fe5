"""Which of the alerts that fired are explained by what is wrong, as the pack itself has it: no list beside the alerts.

An alert is explained where its cause is wrong, and where one that is explained fired too, of the same subject or in the
same cluster, and the alert names it: in ``quiet_under``, ``consequence_of``, ``brought_by`` or ``counts``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from alerts.alert import Alert
from alerts.alertmanager import shared
from alerts.causes import Cause

Labels = Mapping[str, str]
"""Of one that fired, ``alertname`` among them."""


def explained(
    fired: Sequence[Labels], causes: Collection[Cause], alerts: Mapping[str, Alert]
) -> list[Labels]:
    """Those of one cluster that are, in the order in which it comes out. Raises KeyError: no such alert."""
    found = [labels for labels in fired if alerts[labels["alertname"]].cause in causes]
    left = [labels for labels in fired if labels not in found]
    while more := [labels for labels in left if any(_explains(one, labels, alerts) for one in found)]:
        found += more
        left = [labels for labels in left if labels not in more]
    return found


def _explains(one: Labels, other: Labels, alerts: Mapping[str, Alert]) -> bool:
    explaining, alert = alerts[one["alertname"]], alerts[other["alertname"]]
    return any(
        explaining.name in names and all(one.get(label) == other.get(label) for label in labels)
        for names, labels in _relations(alert, explaining)
    )


def _relations(alert: Alert, other: Alert) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Names of what may explain it, each with the labels that have to be the same."""
    yield alert.quiet_under, shared(alert, other)
    yield (*alert.consequence_of, *alert.brought_by, *alert.counts), ()
