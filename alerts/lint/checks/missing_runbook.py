"""Alerts that leave whoever is woken without a page to open."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found
from alerts.lint.problem import Severity
from alerts.lint.reading.query import Query

_PAGES = ("runbook", "playbook", "documentation", "docs")
_TELL_NOBODY = frozenset({"none", "info"})


def _find(query: Query, _context: Context) -> Iterator[Found]:
    alert = query.alert
    if alert is None:
        return
    severity = alert.labels.get("severity")
    if severity is not None and severity.value in _TELL_NOBODY:
        return
    linked = [
        name for name, each in alert.annotations.items() if each.value and name.lower().startswith(_PAGES)
    ]
    if not linked:
        yield Found(
            query.source.place(alert.at),
            f"{alert.name} links no runbook",
            "add the annotation runbook_url: what it means, what to look at, what to do, what not to do",
        )


CHECK = Check("missing-runbook", Severity.WARNING, "An alert that links no runbook.", _find)
