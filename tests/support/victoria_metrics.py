"""A real VictoriaMetrics for a test, on loopback. Debian's package victoria-metrics has it."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.support.processes import end
from tests.support.prometheus import Prometheus, tool

_START_SECONDS = 30.0
_LISTENS = "0A"


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Prometheus]:
    """One with its data in ``folder``; written to and asked as a Prometheus is. Skips where there is none."""
    program = tool("victoria-metrics", "victoria-metrics")
    process = subprocess.Popen(
        [
            program,
            f"-storageDataPath={folder / 'data'}",
            "-httpListenAddr=127.0.0.1:0",
            "-retentionPeriod=100y",
            "-search.latencyOffset=0s",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{_port(process)}"
        assert httpx.get(f"{url}/health", timeout=10.0, trust_env=False).status_code == httpx.codes.OK
        yield Prometheus(url)
    finally:
        end(process)


def flush(server: Prometheus) -> None:
    """Make all that was written seen by queries."""
    httpx.get(f"{server.url}/internal/force_flush", timeout=30.0, trust_env=False).raise_for_status()


def _port(process: subprocess.Popen[bytes]) -> int:
    """Where a process listens, which it doesn't say."""
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        links = set()
        for each in Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                links.add(str(each.readlink()))
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENS and f"socket:[{fields[9]}]" in links:
                return int(fields[1].rpartition(":")[2], 16)
        time.sleep(0.02)
    raise RuntimeError("VictoriaMetrics didn't start")
