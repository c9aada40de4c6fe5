"""The real command in a process of its own, and what it reads: a page over HTTP, or a server that hangs."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx

from tests.support.captures import fixture

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, str(ROOT / "thrashold.py"), "exporter")
PAGE = fixture("vllm-0.32.0/112.prom")
_START_SECONDS = 60.0


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THRASHOLD_")}
    return {**kept, **(extra or {})}


def call(
    *arguments: str, environ: Mapping[str, str] | None = None, command: tuple[str, ...] = COMMAND
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*command, *arguments],
        env=clean_environment(environ),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@dataclass(slots=True)
class Sidecar:
    process: subprocess.Popen[bytes]
    url: str
    _log: IO[bytes]

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode()

    def terminate(self) -> float:
        """Send SIGTERM; gives the seconds it took to end, for benchmarks to judge."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        return time.monotonic() - start

    def client(self) -> httpx.Client:
        """A client that loads no certificates: each would take as long as a hundred requests."""
        return httpx.Client(base_url=self.url, verify=False, trust_env=False, timeout=60)  # noqa: S501 - loopback

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        with self.client() as client:
            return client.get(path, headers=headers)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while self.get("/-/ready").status_code != 200:
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)


@contextlib.contextmanager
def running(
    *arguments: str, environ: Mapping[str, str] | None = None, command: tuple[str, ...] = COMMAND
) -> Iterator[Sidecar]:
    """Run the command on a free loopback port, or wherever ``--listen`` among ``arguments`` says."""
    listen = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, *listen, *arguments], env=clean_environment(environ), cwd=ROOT, stdout=log, stderr=log
        )
        sidecar = Sidecar(process, "", log)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not (found := re.search(r"listening on (https?://\S+),", sidecar.log())):
                assert process.poll() is None, sidecar.log()
                assert time.monotonic() < deadline, sidecar.log()
                time.sleep(0.02)
            sidecar.url = found[1]
            yield sidecar
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(30)


@contextlib.contextmanager
def engine(body: bytes) -> Iterator[str]:
    """Serve ``body`` as an engine's page; gives the engine's URL without a path."""

    class Page(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def hanging_engine() -> Iterator[str]:
    """Take every connection and never answer: the kernel accepts for a listener that nobody serves."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
