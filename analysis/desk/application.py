"""The desk over HTTP: Alertmanager's webhook, pages for people, JSON for programs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import FastAPI, Form, HTTPException, Query, Request
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from alerts.alertmanager import ALERTS_PATH, WATCHDOG_PATH
from analysis.desk.incident import Incident, Work
from analysis.desk.job import REPORT_HTML, REPORT_JSON, REPORT_TEXT
from analysis.desk.pages import REPORT_POLICY, Page, listing, page, work_text
from analysis.desk.store import Store
from analysis.desk.webhook import MOST_BYTES, WebhookError, read
from analysis.desk.work import Worker
from exporter.version import installed_version

logger = logging.getLogger(__name__)

PAGE_SIZE = 100
SILENT_AFTER_SECONDS = 300.0
"""Alertmanager's example repeats the watchdog each minute."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_KEEP_ALIVE_SECONDS = 15.0
_MOST_NOTE = 4000
_MOST_FOLLOWERS = 200
"""Far fewer than the server takes connections: whoever follows never keeps an alert out."""
_BODY_SECONDS = 20.0
_SHOWN_EVENTS = 200
_TOLD_EVENTS = 1000
_ENDED = frozenset({Work.DONE, Work.FAILED})
_Number = Annotated[int, Query(ge=0, lt=2**62)]


@dataclass(slots=True)
class Changes:
    """Wakes those who follow an incident."""

    followers: int = 0
    _waiting: dict[int, set[asyncio.Event]] = field(default_factory=dict)

    def __call__(self, number: int) -> None:
        """Something is new about it."""
        for each in self._waiting.get(number, ()):
            each.set()

    @contextmanager
    def following(self, number: int) -> Iterator[asyncio.Event]:
        """What is set at each change from here on; one clears it before looking, so that none is missed."""
        event = asyncio.Event()
        self._waiting.setdefault(number, set()).add(event)
        self.followers += 1
        try:
            yield event
        finally:
            self.followers -= 1
            self._waiting[number].discard(event)
            if not self._waiting[number]:
                del self._waiting[number]


@dataclass(slots=True)
class Desk:
    """What the pages stand on. ``opened`` is called with incidents that are new."""

    store: Store
    worker: Worker
    changes: Changes
    clock: Callable[[], float]
    webhook: str
    watched_at: float | None = None
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def silent(self) -> str:
        """Why people may not be told though something is wrong; empty: nothing is known of that."""
        now = self.clock()
        if now - (self.began if self.watched_at is None else self.watched_at) < SILENT_AFTER_SECONDS:
            return ""
        if self.watched_at is None:
            return (
                f"Alertmanager has sent no watchdog since the desk began, {(now - self.began) / 60:.0f} min ago: alerts"
                f" may not come through. Look at Prometheus and Alertmanager, and at its route to {WATCHDOG_PATH}."
            )
        return (
            f"Alertmanager has sent no watchdog for {(now - self.watched_at) / 60:.0f} min: alerts may not come"
            " through. Look at Prometheus and Alertmanager."
        )


def application(desk: Desk) -> FastAPI:
    """Make it. Its own documents are at ``/openapi.json``; pages that load scripts from elsewhere are left out."""

    @asynccontextmanager
    async def alive(_app: FastAPI) -> AsyncIterator[None]:
        yield

    app = FastAPI(
        title="thrashold desk", version=installed_version(), docs_url=None, redoc_url=None, lifespan=alive
    )
    _webhooks(app, desk)
    _for_programs(app, desk)
    _for_people(app, desk)
    return app


def _webhooks(app: FastAPI, desk: Desk) -> None:
    @app.post(ALERTS_PATH, status_code=200)
    async def alerts(request: Request) -> Response:
        """Alertmanager's webhook, version 4. 200 says that it is kept."""
        body = await _bounded(request)
        if body is None:
            return _plain(413, f"more than {MOST_BYTES} bytes: nothing of it is kept")
        try:
            message = read(body)
        except WebhookError as error:
            logger.warning("webhook refused: %s", error)
            return _plain(400, str(error))
        if message.truncatedAlerts:
            logger.warning(
                "Alertmanager left %d alerts out: max_alerts of its webhook", message.truncatedAlerts
            )
        taken = desk.store.take(message.alerts, desk.clock())
        for number in (*taken.opened, *taken.ended):
            desk.worker.ask(number)
        for number in taken.changed:
            desk.changes(number)
        return _plain(200, "kept")

    @app.post(WATCHDOG_PATH, status_code=200)
    async def watchdog(request: Request) -> Response:
        """That the way from Prometheus to here is open."""
        if await _bounded(request) is None:
            return _plain(413, f"more than {MOST_BYTES} bytes")
        desk.watched_at = desk.clock()
        return _plain(200, "seen")


def _for_programs(app: FastAPI, desk: Desk) -> None:
    @app.get("/-/healthy", include_in_schema=False)
    async def healthy() -> Response:
        return _plain(200, "healthy")

    @app.get("/api/v1/incidents")
    async def incidents(before: _Number | None = None) -> list[dict[str, Any]]:
        """The newest hundred, or those before a number."""
        return [_told(each) for each in desk.store.incidents(PAGE_SIZE, before)]

    @app.get("/api/v1/incidents/{number}")
    async def incident(number: int) -> dict[str, Any]:
        """One, with the first thousand of its alerts (``more_alerts``: how many more), and what happened last."""
        found = _found(desk, number)
        return _told(found) | {
            "alerts": [
                {
                    "labels": dict(each.labels),
                    "annotations": dict(each.annotations),
                    "starts": each.starts,
                    "ends": each.ends,
                }
                for each in found.alerts
            ],
            "more_alerts": found.more,
            "events": [
                {"at": each.at, "text": each.text} for each in desk.store.latest(number, _TOLD_EVENTS)
            ],
        }

    @app.get("/api/v1/incidents/{number}/events")
    async def follow(request: Request, number: int, after: _Number = 0) -> Response:
        """What happens to it, as it happens: server-sent events; ``work`` says how far the report is."""
        _found(desk, number)
        if desk.changes.followers >= _MOST_FOLLOWERS:
            raise HTTPException(
                503, f"{_MOST_FOLLOWERS} follow already: ask for the incident instead, now and then"
            )
        last = request.headers.get("last-event-id", "")
        start = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else after  # noqa: PLR2004
        return StreamingResponse(
            _events(desk, number, start),
            media_type="text/event-stream",
            headers=_HEADERS | {"X-Accel-Buffering": "no"},
        )

    @app.post("/api/v1/incidents/{number}/close")
    async def close(number: int, note: Annotated[str, Query(max_length=_MOST_NOTE)] = "") -> dict[str, Any]:
        """Close it, with a note."""
        _close(desk, number, note)
        return _told(_found(desk, number))

    @app.post("/api/v1/incidents/{number}/report", status_code=202)
    async def report(number: int) -> dict[str, Any]:
        """Have its report made anew."""
        _found(desk, number)
        desk.worker.ask(number)
        return _told(_found(desk, number))


def _for_people(app: FastAPI, desk: Desk) -> None:
    @app.get("/", include_in_schema=False)
    async def index(before: _Number | None = None) -> Response:
        found = desk.store.incidents(PAGE_SIZE, before)
        older = found[-1].number if len(found) == PAGE_SIZE else None
        return _html(listing(found, desk.clock(), older, desk.silent(), desk.webhook))

    @app.get("/incidents/{number}", include_in_schema=False)
    async def one(number: int) -> Response:
        found = _found(desk, number)
        has = (desk.worker.files(number) / REPORT_HTML).is_file()
        return _html(page(found, desk.store.latest(number, _SHOWN_EVENTS), desk.clock(), has_report=has))

    @app.post("/incidents/{number}/close", include_in_schema=False)
    async def close(number: int, note: Annotated[str, Form(max_length=_MOST_NOTE)] = "") -> Response:
        _close(desk, number, note)
        return RedirectResponse(f"/incidents/{number}", 303)

    @app.post("/incidents/{number}/report", include_in_schema=False)
    async def anew(number: int) -> Response:
        _found(desk, number)
        desk.worker.ask(number)
        return RedirectResponse(f"/incidents/{number}", 303)

    def file(number: int, name: str, kind: str) -> Response:
        _found(desk, number)
        path = desk.worker.files(number) / name
        if not path.is_file():
            raise HTTPException(404, "there is no report yet")
        return FileResponse(
            path, media_type=kind, headers=_HEADERS | {"Content-Security-Policy": REPORT_POLICY}
        )

    @app.get("/incidents/{number}/report", include_in_schema=False)
    async def html(number: int) -> Response:
        return file(number, REPORT_HTML, "text/html")

    @app.get("/incidents/{number}/report.md", include_in_schema=False)
    async def markdown(number: int) -> Response:
        return file(number, REPORT_TEXT, "text/plain; charset=utf-8")

    @app.get("/incidents/{number}/report.json", include_in_schema=False)
    async def as_json(number: int) -> Response:
        return file(number, REPORT_JSON, "application/json")


async def _events(desk: Desk, number: int, after: int) -> AsyncIterator[str]:
    work: Work | None = None
    with desk.changes.following(number) as changed:
        while True:
            changed.clear()
            found = desk.store.incident(number, 0)
            if found is None:
                return
            news = desk.store.events(number, after, _TOLD_EVENTS)
            for each in news:
                after = each.number
                yield f"id: {each.number}\ndata: {json.dumps({'at': each.at, 'text': each.text})}\n\n"
            if len(news) == _TOLD_EVENTS:
                continue
            if found.work is not work:
                done = work is not None and found.work in _ENDED
                yield f"event: work\ndata: {json.dumps({'text': work_text(found), 'done': done})}\n\n"
                work = found.work
            elif not news:
                yield ": still there\n\n"
            with suppress(TimeoutError):
                async with asyncio.timeout(_KEEP_ALIVE_SECONDS):
                    await changed.wait()


async def _bounded(request: Request) -> bytes | None:
    """The body; None: it is larger than anything that Alertmanager sends. Raises HTTPException: it never ends."""
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_BYTES:
                    return None
    except TimeoutError:
        raise HTTPException(
            408, f"the body was not whole in {_BODY_SECONDS:g} s: nothing of it is kept"
        ) from None
    return bytes(body)


def _close(desk: Desk, number: int, note: str) -> None:
    _found(desk, number)
    desk.store.close_incident(number, desk.clock(), note.strip())
    desk.changes(number)


def _found(desk: Desk, number: int) -> Incident:
    found = desk.store.incident(number) if 0 <= number < 2**62 else None
    if found is None:
        raise HTTPException(404, "there is no such incident")
    return found


def _told(incident: Incident) -> dict[str, Any]:
    return {
        "number": incident.number,
        "title": incident.title,
        "cluster": dict(incident.cluster),
        "engines": list(incident.engines),
        "state": incident.state,
        "opened": incident.opened,
        "ended": incident.ended,
        "closed": incident.closed,
        "note": incident.note,
        "report": incident.work.value,
        "reported_until": incident.reported,
    }


def _html(made: Page) -> Response:
    return HTMLResponse(made.html, headers=_HEADERS | {"Content-Security-Policy": made.policy})


def _plain(status: int, text: str) -> Response:
    return JSONResponse({"told": text}, status)
