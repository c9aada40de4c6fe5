"""What Alertmanager sends, and a desk in a process of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from tests.exporter.running import ROOT, clean_environment, free_port
from tests.support.processes import end

_START_SECONDS = 60.0


def alert(
    name: str, fingerprint: str, starts: float, ends: float | None = None, /, **labels: str
) -> dict[str, Any]:
    """One alert of a notification."""
    return {
        "status": "firing" if ends is None else "resolved",
        "labels": {"alertname": name, **labels},
        "annotations": {"summary": f"{name} is so"},
        "startsAt": _written(starts),
        "endsAt": "0001-01-01T00:00:00Z" if ends is None else _written(ends),
        "generatorURL": "http://prometheus.example/graph",
        "fingerprint": fingerprint,
    }


def message(*alerts: dict[str, Any]) -> bytes:
    """A notification."""
    return json.dumps(
        {"version": "4", "groupKey": "{}", "receiver": "page", "status": "firing", "alerts": alerts}
    ).encode()


def _written(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


@dataclass
class RunningDesk:
    """One that listens at ``url``."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def client(self, **more: Any) -> httpx.Client:  # noqa: ANN401 - httpx's own
        """Asks it, as nobody's proxy."""
        return httpx.Client(base_url=self.url, trust_env=False, timeout=20.0, **more)


@contextlib.contextmanager
def running_desk(
    folder: Path, arguments: Sequence[str] = (), host: str = "127.0.0.1"
) -> Iterator[RunningDesk]:
    """One with its data in a folder."""
    port = free_port()
    log = folder.parent / f"{folder.name}.log"
    command = (sys.executable, "-m", "thrashold", "desk", "--data", str(folder), "--listen", f"{host}:{port}")
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [*command, *arguments], cwd=ROOT, env=clean_environment(), stdout=sink, stderr=subprocess.STDOUT
        )
    found = RunningDesk(process, f"http://127.0.0.1:{port}", log)
    try:
        until = time.monotonic() + _START_SECONDS
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{found.url}/-/healthy", trust_env=False).status_code in {200, 401}:
                    break
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the desk didn't start:\n{log.read_text()}")
            time.sleep(0.05)
        yield found
    finally:
        end(process)
