"""``thrashold stack`` in a process of its own: started on free ports, asked, and its parts found by their ids."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.exporter.running import ROOT, clean_environment
from tests.support.processes import end
from tests.support.prometheus import Prometheus

COMMAND = (sys.executable, "-m", "thrashold", "stack")
RUNS = "all of it runs"
_PORTS = 8
_WORDS = {"drill": "drill", "sidecar": "exporter"}


def port_base() -> int:
    """The first of some ports in a row that nobody listens on."""
    for base in range(20_000 + os.getpid() % 9000, 60_000, 70):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(base, base + _PORTS):
                    stack.enter_context(contextlib.closing(socket.create_server(("127.0.0.1", port))))
            except OSError:
                continue
            return base
    raise RuntimeError("no ports")


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for it. Raises AssertionError where it doesn't come."""
    end_at = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end_at
        time.sleep(0.1)


def holds(ask: Callable[[], bool]) -> Callable[[], bool]:
    """The same question, to which no answer is a no."""

    def asked() -> bool:
        try:
            return ask()
        except (httpx.HTTPError, AssertionError):
            return False

    return asked


@dataclass
class RunningStack:
    """One that runs; ``said``: its lines so far."""

    process: subprocess.Popen[str]
    base: int
    folder: Path
    said: list[str]

    @property
    def ports(self) -> Mapping[str, int]:
        """Of its parts, by name."""
        names = ("sidecar", "desk", "prometheus", "alertmanager", "grafana", "drill")
        return {name: self.base + place for place, name in enumerate(names)} | {"envoy": self.base + 5}

    def url(self, part: str) -> str:
        """Of a part, without a path."""
        return f"http://127.0.0.1:{self.ports[part]}"

    @property
    def prometheus(self) -> Prometheus:
        """To be asked."""
        return Prometheus(self.url("prometheus"))

    def pid(self, part: str) -> int:
        """Of a part that runs: it is the stack's own child. Raises AssertionError."""
        kids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        word = _WORDS.get(part, part)
        for kid in kids:
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{kid}/cmdline").read_bytes().split(b"\0")
                texts = [each.decode() for each in command]
                if word in texts or Path(texts[0]).name.endswith(word):
                    return int(kid)
        raise AssertionError(f"no {part} among {kids}")


@contextlib.contextmanager
def running_stack(
    folder: Path, *arguments: str, environ: Mapping[str, str] | None = None, seconds: float = 60.0
) -> Iterator[RunningStack]:
    """One with its data in a folder, once all of it runs. Raises AssertionError where it doesn't within ``seconds``."""
    base = port_base()
    process = subprocess.Popen(
        [*COMMAND, "--data", str(folder), "--port-base", str(base), *arguments],
        cwd=ROOT,
        env=clean_environment(environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said: list[str] = []
    assert process.stdout is not None
    reader = threading.Thread(target=said.extend, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        until(lambda: any(RUNS in line for line in said) or process.poll() is not None, seconds)
        assert process.poll() is None, "".join(said)
        yield RunningStack(process, base, folder, said)
    finally:
        end(process)
        reader.join(10.0)
        process.stdout.close()
