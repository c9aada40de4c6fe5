"""The desk's pages for people. What alerts say is text, whatever is in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from urllib.parse import urlsplit

from markupsafe import Markup

from analysis.desk.incident import Incident, KeptAlert, Work
from analysis.desk.store import Event
from analysis.page.document import HERE as PAGE
from analysis.page.document import templates
from analysis.page.instant import instant

HERE = files("analysis.desk")
REPORT_POLICY = "sandbox allow-scripts allow-popups"
"""Of a report: it is a page of its own, and none of the desk's."""
_SHOWN_ALERTS = 200
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_SUBJECTS = ("engine", "rank", "gateway", "uuid", "source")
_WORK = {
    Work.NONE: "not asked for",
    Work.WAITING: "waits for its turn",
    Work.RUNNING: "is being made",
    Work.DONE: "there",
    Work.FAILED: "could not be made: see below",
}


@dataclass(frozen=True, slots=True)
class Page:
    """HTML, and the policy that it goes under."""

    html: str
    policy: str


@dataclass(frozen=True, slots=True)
class _Shown:
    number: int
    title: str
    opened: float
    state: str
    engines: tuple[str, ...]
    note: str
    lasted: str
    report: str


@dataclass(frozen=True, slots=True)
class _Alert:
    name: str
    subject: str
    starts: float
    ends: float | None
    summary: str
    runbook: str


def listing(incidents: Sequence[Incident], now: float, older: int | None, silent: str, webhook: str) -> Page:
    """All incidents. ``older``: there are more before that number. ``silent``: why nobody may be told, or empty."""
    shown = [_shown(each, now) for each in incidents]
    return _page(
        "Incidents", _filled("list.html.j2", incidents=shown, older=older, silent=silent, webhook=webhook)
    )


def page(incident: Incident, events: Sequence[Event], now: float, *, has_report: bool) -> Page:
    """One incident."""
    main = _filled(
        "incident.html.j2",
        incident=_shown(incident, now),
        alerts=[_alert(each) for each in incident.alerts[:_SHOWN_ALERTS]],
        more=incident.more + max(0, len(incident.alerts) - _SHOWN_ALERTS),
        events=events,
        after=events[-1].number if events else 0,
        has_report=has_report,
    )
    under = [f"Incident {incident.number}, since {instant(incident.opened)} UTC"]
    return _page(incident.title, main, under, script=(HERE / "incident.js").read_text(encoding="utf-8"))


def work_text(incident: Incident) -> str:
    """How far its report is, in words."""
    told = _WORK[incident.work]
    if incident.reported is not None:
        told += f"; the newest looks until {instant(incident.reported)} UTC"
    return told


def _page(title: str, main: Markup, under: Sequence[str] = (), script: str = "") -> Page:
    html = _filled(
        "desk.html.j2",
        title=title,
        under=under,
        main=main,
        back=bool(under),
        script=Markup(script),  # noqa: S704 - our own
        style=Markup((PAGE / "page.css").read_text(encoding="utf-8")),  # noqa: S704 - our own
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline';"
        " connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    return Page(str(html), policy)


def _filled(name: str, /, **values: object) -> Markup:
    text = (HERE / name).read_text(encoding="utf-8")
    return Markup(templates().from_string(text).render(**values))  # noqa: S704 - made by autoescape


def _shown(incident: Incident, now: float) -> _Shown:
    end = incident.ended if incident.ended is not None else now
    return _Shown(
        incident.number,
        incident.title,
        incident.opened,
        incident.state,
        incident.engines,
        incident.note,
        _lasted(max(0.0, end - incident.opened)),
        work_text(incident),
    )


def _alert(alert: KeptAlert) -> _Alert:
    subject = " ".join(f"{name} {alert.labels[name]}" for name in _SUBJECTS if alert.labels.get(name))
    runbook = alert.annotations.get("runbook_url", "")
    return _Alert(
        alert.name,
        subject,
        alert.starts,
        alert.ends,
        alert.annotations.get("summary") or alert.annotations.get("description", ""),
        # anything else than a web page would be a command to somebody's browser
        runbook if urlsplit(runbook).scheme in {"http", "https"} else "",
    )


def _lasted(seconds: float) -> str:
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    if seconds < _DAY:
        return f"{seconds / _HOUR:.1f} h"
    return f"{seconds / _DAY:.1f} days"
