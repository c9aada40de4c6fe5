"""A sidecar as a process of its own, as a user would run it, and what it says on its pages."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

PREFIX = "thrashold_"
_WHOSE = frozenset({"engine", "rank", "model_name", "source"})
"""Labels that say whose value it is: in a demo of one engine they are the same everywhere."""

_READY_SECONDS = 30.0
_END_SECONDS = 5.0
_READ_SECONDS = 10.0
_DYING_SECONDS = 0.5


class SidecarError(Exception):
    """The sidecar did not start, ended, or does not answer."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What ``/metrics`` said at one moment: values by name and labels, and how sure each signal is."""

    values: Mapping[tuple[str, frozenset[tuple[str, str]]], float]
    confidence: Mapping[str, str]

    def get(self, name: str, **labels: str) -> float | None:
        """The value of a signal, its name without the prefix; None while it is absent."""
        return self.values.get((name, frozenset(labels.items())))


def parsed(exposition: str) -> Reading:
    """Read an exposition of the sidecar's. Raises ValueError where it isn't one."""
    values: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    confidence: dict[str, str] = {}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            name = sample.name.removeprefix(PREFIX)
            if name == "signal_info":
                confidence[sample.labels["signal"].removeprefix(PREFIX)] = sample.labels["confidence"]
                continue
            own = frozenset(pair for pair in sample.labels.items() if pair[0] not in _WHOSE)
            values[name, own] = sample.value
    return Reading(values, confidence)


@dataclass(frozen=True, slots=True)
class Cost:
    """What the process has taken so far: CPU seconds, and the most memory it ever held (bytes)."""

    cpu_seconds: float
    peak_bytes: float


class Sidecar:
    """A running sidecar."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, log: Path) -> None:
        self.url = url
        self._process = process
        self._log = log

    def read(self) -> Reading:
        """Scrape it once. Raises SidecarError with the reason in one line."""
        try:
            return self._metrics()
        except (OSError, http.client.HTTPException, ValueError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_DYING_SECONDS)  # connections are refused a moment before it is gone
            ended = self._process.returncode is not None
            raise SidecarError(self._why("ended" if ended else f"does not answer: {error}")) from error

    def wait_until_ready(self) -> None:
        """Wait until it has read its engine. Raises SidecarError when it ends or takes too long."""
        deadline = time.monotonic() + _READY_SECONDS
        said = "did not listen"
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise SidecarError(self._why("ended"))
            with contextlib.suppress(OSError, http.client.HTTPException):
                status, text = self._get("/-/ready")
                if status == HTTPStatus.OK:
                    return
                said = text.strip()
            time.sleep(0.05)
        raise SidecarError(self._why(f"was not ready within {_READY_SECONDS:.0f} s: {said}"))

    def cost(self) -> Cost | None:
        """What it has taken so far; None where the system has no ``/proc``."""
        process = Path("/proc") / str(self._process.pid)
        try:
            # the name in parentheses may hold spaces; utime and stime are the 12th and 13th after it
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
            ticks = int(fields[11]) + int(fields[12])
            peak_kib = int(status["VmHWM"].split()[0])
        except (OSError, KeyError, ValueError, IndexError):
            return None
        return Cost(ticks / os.sysconf("SC_CLK_TCK"), peak_kib * 1024)

    def _metrics(self) -> Reading:
        status, text = self._get("/metrics")
        if status != HTTPStatus.OK:
            raise ValueError(f"it answers {status}")
        return parsed(text)

    def _get(self, path: str) -> tuple[int, str]:
        """Status and text of the answer, straight from loopback, whatever proxy the environment names."""
        where = urlsplit(self.url).netloc
        with contextlib.closing(http.client.HTTPConnection(where, timeout=_READ_SECONDS)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def _why(self, what: str) -> str:
        code = self._process.poll()
        ended = "" if code is None else f" (exit code {code})"
        last = self._log.read_text(errors="replace").strip().rpartition("\n")[2]
        return f"the sidecar {what}{ended}" + (f"; its log ends with: {last}" if last else "")


@contextlib.contextmanager
def running(engine_url: str, *, name: str, kv_bytes_per_token: float) -> Iterator[Sidecar]:
    """Run ``thrashold exporter`` on a free port over the engine at ``engine_url`` until the block ends.

    Raises SidecarError when it can't be started or does not get ready.
    """
    with tempfile.TemporaryDirectory(prefix="thrashold-demo-") as folder:
        config, log = Path(folder) / "sidecar.yaml", Path(folder) / "sidecar.log"
        engine = {"url": engine_url, "name": name, "kv_bytes_per_token": kv_bytes_per_token}
        config.write_text(json.dumps({"engines": [engine]}))  # JSON is YAML
        port = _free_port()
        command = [sys.executable, "-m", "thrashold", "exporter", "--config", str(config)]
        # settings of the user's own sidecar must not leak into this one
        environment = {key: value for key, value in os.environ.items() if not key.startswith("THRASHOLD_")}
        with log.open("wb") as log_file:
            process = subprocess.Popen(  # noqa: S603 - our own command
                [*command, "--listen", f"127.0.0.1:{port}"],
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                env=environment,
            )
        try:
            sidecar = Sidecar(process, f"http://127.0.0.1:{port}", log)
            sidecar.wait_until_ready()
            yield sidecar
        finally:
            with _undisturbed():
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End ``process`` with SIGTERM, and wait until it is gone."""
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold back a second Ctrl-C while the process is ended: it would leave an orphan."""
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before: list[tuple[signal.Signals, Callable[[int, FrameType | None], object] | int | None]] = []
    with contextlib.suppress(ValueError):  # only the main thread may set handlers
        before = [(kind, signal.signal(kind, signal.SIG_IGN)) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in before:
            signal.signal(kind, handler)
