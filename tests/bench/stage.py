"""The engine, the sidecar and the Prometheus of a benchmark: real processes, real sockets, loopback only."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.bench.processes import ROOT
from tests.support.processes import end

_SCRAPE_SECONDS = 5.0
_START_SECONDS = 20.0
_LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
_AS_PROMETHEUS = {
    "Accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1",
    "Accept-Encoding": "gzip",
}


@dataclass(frozen=True, slots=True)
class Engine:
    """The replay server: a port for each reader; ``told`` says what it plays."""

    ports: Sequence[int]
    told: str

    def reads(self) -> Mapping[int, int]:
        """How often each port's ``/metrics`` was read so far."""
        found: dict[str, int] = json.loads(_get(self.ports[0], "/-/reads"))
        return {int(port): count for port, count in found.items()}


@contextmanager
def engine(capture: str, readers: int) -> Iterator[Engine]:
    """A running engine."""
    command = [sys.executable, "-m", "tests.bench.replay_server", capture, str(readers)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("a pipe was asked for")
            told: dict[str, Any] = json.loads(process.stdout.readline())
            yield Engine(told["ports"], told["told"])
        finally:
            end(process)


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Ours, running; ``start_seconds`` passed until it answered."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    start_seconds: float


@contextmanager
def sidecar(
    command: Sequence[str],
    engine_port: int,
    folder: Path,
    more: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Sidecar]:
    """A running sidecar, ``command`` being the whole command line's; its log goes to ``folder``.

    ``more`` are further arguments of it, ``environment`` further variables.
    """
    log = folder / "sidecar.log"
    arguments = ["exporter", "--engine", f"http://127.0.0.1:{engine_port}", "--listen", "127.0.0.1:0"]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("THRASHOLD_")}
    variables |= environment or {}
    with log.open("wb") as output:
        began = time.monotonic()
        process = subprocess.Popen(
            [*command, *arguments, *more], stderr=output, stdout=output, cwd=ROOT, env=variables
        )
    try:
        while (found := _LISTENING.search(log.read_text(encoding="utf-8"))) is None:
            if process.poll() is not None or time.monotonic() - began > _START_SECONDS:
                raise RuntimeError(f"the sidecar does not start: {log.read_text(encoding='utf-8')[-500:]}")
            time.sleep(0.01)
        _get(int(found[1]), "/-/healthy")
        yield Sidecar(process, int(found[1]), log, time.monotonic() - began)
    finally:
        end(process)


def _get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


@dataclass(slots=True)
class Prometheus:
    """Scrapes the sidecar every few seconds over one kept connection, while the ``with`` lasts."""

    port: int
    scrapes: int = 0
    newest: tuple[bytes, ...] = ()
    """The lines of the newest answer that hold a value; none after a scrape that failed."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._scrape, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(15)

    @property
    def saw_engine(self) -> bool:
        """Whether the sidecar last said that it reads its engine."""
        return any(
            each.startswith(b"thrashold_source_up{") and each.endswith(b" 1.0") for each in self.newest
        )

    def _scrape(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        while not self._stop.wait(_SCRAPE_SECONDS):
            self.newest = ()
            try:
                connection.request("GET", "/metrics", headers=_AS_PROMETHEUS)
                text = gzip.decompress(connection.getresponse().read())
            except (OSError, http.client.HTTPException):
                connection.close()
                continue
            self.newest = tuple(each for each in text.splitlines() if not each.startswith(b"#"))
            self.scrapes += 1
