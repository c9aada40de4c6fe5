"""Runbooks: where the page of an alert is, and how it begins.

Each alert has a page of its name in ``docs/runbooks/``; pages in small letters there are shared by several.
"""

from __future__ import annotations

import textwrap

from alerts.alert import Alert, Severity

BASE = "docs/runbooks"
"""Where pages are, unless a setting says where they are published: what ``/NAME.md`` is put behind."""
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation", "Wrong moves", "Try it")
"""Of each page, in this order."""
_WIDTH = 120
SEVERITIES = {
    Severity.PAGE: "Page: somebody is woken.",
    Severity.WARNING: "Warning: for somebody at work.",
    Severity.INFO: "Info: nobody is told.",
}


def runbook_url(alert: Alert, base: str = BASE) -> str:
    """Where the alert's page is."""
    return page_url(alert.name, base)


def page_url(name: str, base: str = BASE) -> str:
    """Where a page is: of an alert, or one in small letters that several share."""
    return f"{base.rstrip('/')}/{name}.md"


def head(alert: Alert) -> str:
    """How its page begins: name, severity and cause in words."""
    told = f"{SEVERITIES[alert.severity]} Cause `{alert.cause}`: {alert.cause.sentence}"
    return f"# {alert.name}\n\n{textwrap.fill(told, _WIDTH, break_on_hyphens=False)}\n"
