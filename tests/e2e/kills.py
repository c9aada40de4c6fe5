"""One process after the other is killed under load; what it had acknowledged before is asked for again afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from tests.e2e.asking import Client
from tests.real_engine import serve
from tests.support.desk import alert, message
from tests.support.stack import RunningStack

SETTLED_SECONDS = 5.0
"""Older than that is what was told before: the newest samples may not have been asked for yet."""
HISTORY_SECONDS = 60.0
HEALTHY = {
    "envoy": "/",
    "sidecar": "/metrics",
    "desk": "/-/healthy",
    "alertmanager": "/-/ready",
    "prometheus": "/-/ready",
}
ANSWERED_AT_LEAST = 5
"""Answers after which clients are served again."""
_WEBHOOK_PAUSE_SECONDS = 0.05
_RECORDED = "generation_tokens_total"


@dataclass(frozen=True, slots=True)
class Load:
    """Clients that ask on; ``log``: a line for each request that is over."""

    log: Path
    process: subprocess.Popen[bytes]

    def requests(self) -> list[dict[str, Any]]:
        """All that are over, as their clients saw them."""
        lines = self.log.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def answered_since(self, at: float) -> int:
        """How many were begun after ``at`` and have their whole answer."""
        return sum(each["end"] == "done" and each["begin"] > at for each in self.requests())

    def stop(self) -> None:
        """No more of them."""
        serve.stop(self.process)


def killed(part: str, stack: RunningStack, ask: Client, load: Load) -> dict[str, Any]:
    """Kill it, wait until it and what depends on it is back; gives what it knew before and after."""
    knows = _KNOWS.get(part)
    told: dict[str, Any] = {}
    with _Webhooks(stack.url("desk")) as webhooks:
        if part == "desk":
            webhooks.begin()
            ask.until(lambda: len(webhooks.kept) > ANSWERED_AT_LEAST)
        # the same moment both times, or the oldest of what is asked for slips out
        asked = time.time()
        before = None if knows is None else knows(ask, asked)
        pid, at = stack.pid(part), time.time()
        os.kill(pid, signal.SIGKILL)
        ask.until(lambda: stack.pid(part) != pid)
        ask.until(lambda: _answers(stack.url(part) + HEALTHY[part]))
        back = time.time()
        if part == "desk":
            ask.until(lambda: webhooks.kept_since(back) > ANSWERED_AT_LEAST)
    told["kept_webhooks"], told["refused_webhooks"] = sorted(webhooks.kept), webhooks.refused
    ask.until(lambda: load.answered_since(back) >= ANSWERED_AT_LEAST)
    after = None if knows is None else knows(ask, asked)
    return told | {
        "at": at,
        "back": back,
        "answered": time.time(),
        "before": before,
        "after": after,
        "said": [line for line in stack.said if line.partition(" ")[2].startswith(f"{part} died")],
    }


def _answers(url: str) -> bool:
    """Whether anybody does; what it says is another's matter."""
    return httpx.get(url, timeout=10.0, trust_env=False).status_code < httpx.codes.INTERNAL_SERVER_ERROR


@dataclass
class _Webhooks:
    """Alertmanager's own message again and again, each about another alert; ``kept``: those answered with 200."""

    url: str
    kept: dict[str, float] = field(default_factory=dict)
    refused: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def begin(self) -> None:
        """In a thread of its own, until it is left."""
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def kept_since(self, at: float) -> int:
        """How many."""
        return sum(each > at for each in list(self.kept.values()))

    def _send(self) -> None:
        number, starts = 0, time.time()
        with httpx.Client(base_url=self.url, timeout=10.0, trust_env=False) as client:
            while not self._over.wait(_WEBHOOK_PAUSE_SECONDS):
                number += 1
                name = f"Kept{number}"
                body = message(alert(name, f"{number:016x}", starts, cluster="webhooks"))
                try:
                    kept = client.post("/alerts", content=body).status_code == httpx.codes.OK
                except httpx.HTTPError:
                    kept = False
                if kept:
                    self.kept[name] = time.time()
                else:
                    self.refused += 1


def _of_recorder(ask: Client, at: float) -> list[str]:
    """Lines of a series that are settled: the same ones at any later time."""
    page = ask.recorded(at - HISTORY_SECONDS, at - SETTLED_SECONDS, _RECORDED)
    return [line for line in page.splitlines() if not line.startswith("#")]


def _of_prometheus(ask: Client, at: float) -> list[str]:
    """Samples of a series, and when each alert that fires began."""
    series = ask.series(f"thrashold_{_RECORDED}", at - HISTORY_SECONDS, at - SETTLED_SECONDS)
    return [
        json.dumps([each["metric"], sample], sort_keys=True) for each in series for sample in each["values"]
    ]


def _of_desk(ask: Client, _at: float) -> list[str]:
    """Alerts of all incidents, and what was said of these."""
    return [
        json.dumps([each["number"], what["labels"], what["starts"]], sort_keys=True)
        for each in ask.incidents()
        for what in each["alerts"]
    ]


_KNOWS: dict[str, Callable[[Client, float], list[str]]] = {
    "sidecar": _of_recorder,
    "desk": _of_desk,
    "prometheus": _of_prometheus,
}
