"""A real Alertmanager for a test, started on loopback. Debian's package has it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.support.processes import end
from tests.support.prometheus import tool

PACKAGE = "prometheus-alertmanager"
_START_SECONDS = 20.0


@contextlib.contextmanager
def started(configuration: Path, folder: Path) -> Iterator[str]:
    """One that goes by a configuration, with what it keeps and its log in ``folder``; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = folder / "alertmanager.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [
                tool("prometheus-alertmanager", PACKAGE),
                f"--config.file={configuration}",
                f"--storage.path={folder}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--cluster.listen-address=",
            ],
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + _START_SECONDS
        while not _ready(url):
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError(f"Alertmanager didn't start; its log:\n{log.read_text()}")
            time.sleep(0.05)
        yield url
    finally:
        end(process)


def _ready(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{url}/-/ready", timeout=2, trust_env=False).status_code == httpx.codes.OK
    return False
