"""What Alertmanager tells: a webhook that notes when each notification came, to whom it goes, and what it says."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Told:
    """One alert of a notification. ``identity``: of its labels, the same each time it fires."""

    name: str
    firing: bool
    cause: str
    labels: Mapping[str, str]
    identity: str
    runbook: str

    def __str__(self) -> str:
        subject = self.labels.get("engine") or self.labels.get("uuid") or self.labels.get("gateway")
        return self.name + (f" {subject}" if subject else "") + ("" if self.firing else " (over)")


@dataclass(frozen=True, slots=True)
class Notification:
    """``at`` seconds since the epoch, for ``receiver`` of Alertmanager's configuration."""

    at: float
    receiver: str
    alerts: tuple[Told, ...]

    @property
    def firing(self) -> tuple[Told, ...]:
        """Those of its alerts that aren't over."""
        return tuple(each for each in self.alerts if each.firing)


def read(at: float, payload: Mapping[str, Any]) -> Notification:
    """What Alertmanager sends, version 4."""
    told = tuple(
        Told(
            each["labels"]["alertname"],
            each["status"] == "firing",
            each["labels"].get("cause", ""),
            each["labels"],
            each["fingerprint"],
            each.get("annotations", {}).get("runbook_url", ""),
        )
        for each in payload["alerts"]
    )
    return Notification(at, payload["receiver"], told)


@dataclass(slots=True)
class Webhook:
    """One that listens at ``url``; ``heard`` in the order in which they came."""

    url: str
    heard: list[Notification] = field(default_factory=list)


@contextlib.contextmanager
def listening() -> Iterator[Webhook]:
    """On a free loopback port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            at = time.time()
            body = self.rfile.read(int(self.headers["Content-Length"]))
            webhook.heard.append(read(at, json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    webhook = Webhook(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    thread.start()
    try:
        yield webhook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
