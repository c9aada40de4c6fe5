"""Who reads the fake GPUs in the benchmark: sidecars, samplers and a peer, each a process under watch."""

from __future__ import annotations

import http.client
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.processes import ROOT, Usage, usage
from tests.exporter.running import free_port
from tests.support.processes import end

_START_SECONDS = 20.0


@dataclass(slots=True)
class Watched:
    """A process, its children not included, at the beginning and the end of each slice."""

    pid: int
    usages: list[Usage] = field(default_factory=list)

    def look(self) -> None:
        """Take one more usage."""
        self.usages.append(usage(self.pid, family=False))

    @property
    def cpu(self) -> float:
        """Percent of a core, over all slices."""
        return self.usages[-1].cpu_share_since(self.usages[0])

    @property
    def slices(self) -> list[float]:
        """The same, slice by slice."""
        return [after.cpu_share_since(before) for before, after in itertools.pairwise(self.usages)]

    @property
    def rss(self) -> float:
        """The largest seen, in MB."""
        return max(each.rss_megabytes for each in self.usages)


def page(port: int) -> str:
    """What ``/metrics`` shows; empty where nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    except OSError:
        return ""
    finally:
        connection.close()


def sampler_of(parent: int) -> int:
    """The sampler that a sidecar has started."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split()
        for pid in children:
            if b"exporter.sampler" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
        time.sleep(0.05)
    raise RuntimeError("the sidecar has started no sampler")


@contextmanager
def sampler_alone(environment: Mapping[str, str]) -> Iterator[int]:
    """A sampler whose frames nobody reads: what it costs is its own."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "exporter.sampler"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "MALLOC_ARENA_MAX": "2", "PYTHONPATH": str(ROOT), **environment},
    ) as process:
        try:
            yield process.pid
        finally:
            end(process)


@contextmanager
def nvitop(command: Path, environment: Mapping[str, str], folder: Path) -> Iterator[tuple[int, int]]:
    """The peer, once it answers: its process and its port."""
    port = free_port()
    log = (folder / "nvitop.log").open("wb")
    arguments = ["--bind-address", "127.0.0.1", "--hostname", "bench", "--port", str(port), "--interval", "1"]
    variables = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "LANG": "C.UTF-8", **environment}
    with (
        log,
        subprocess.Popen([command, *arguments], stdout=log, stderr=log, env=variables, cwd=folder) as process,
    ):
        try:
            deadline = time.monotonic() + _START_SECONDS
            while "memory" not in page(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    words = (folder / "nvitop.log").read_text(errors="replace").strip().splitlines()
                    raise RuntimeError(words[-1] if words else "it does not answer")
                time.sleep(0.1)
            yield process.pid, port
        finally:
            end(process)
