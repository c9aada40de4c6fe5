"""An engine that isn't there: serves a replay on loopback, the same second to whoever asks.

A process of its own, so that its work is nobody else's: ``python -m tests.bench.replay_server CAPTURE
PORTS`` prints that many ports, one for each reader, and ends when its standard input does. On the first of
them ``/-/reads`` tells how often each port's ``/metrics`` was read.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from tests.bench.replay import Replay, replay

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MODELS = {"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": 4096}]}


class Playing:
    """A replay that runs with the clock; a second's body is made once, whoever asks first."""

    def __init__(self, scrapes: Replay) -> None:
        self._replay = scrapes
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._newest = (0, scrapes.body(0))

    def now(self) -> bytes:
        """The body of this second."""
        second = int(time.monotonic() - self._start)
        with self._lock:
            if self._newest[0] != second:
                self._newest = (second, self._replay.body(second))
            return self._newest[1]


class Handler(BaseHTTPRequestHandler):
    """Answers ``/metrics`` and the few questions that monitors ask besides."""

    protocol_version = "HTTP/1.1"
    timeout = 120
    # head and body leave in one packet: else an answer waits 40 ms for an acknowledgement
    wbufsize = -1
    disable_nagle_algorithm = True
    playing: ClassVar[Playing]
    reads: ClassVar[dict[int, int]] = {}

    def do_GET(self) -> None:
        """Answer one request."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self.reads[self._port] = self.reads.get(self._port, 0) + 1
            self._answer(self.playing.now(), CONTENT_TYPE)
        elif path == "/-/reads":
            self._answer(json.dumps(self.reads).encode())
        elif path == "/v1/models":
            self._answer(json.dumps(_MODELS).encode())
        elif path == "/version":
            self._answer(b'{"version": "0.32.0"}')
        elif path in {"/health", "/ping"}:
            self._answer(b"")
        else:
            self._answer(b"", status=404)

    @property
    def _port(self) -> int:
        return int(self.connection.getsockname()[1])

    def _answer(self, body: bytes, kind: str = "application/json", status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
        """Say nothing."""


def main(capture: str, ports: int) -> None:
    """Serve until standard input ends."""
    scrapes = replay(capture)
    Handler.playing = Playing(scrapes)
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(ports)]
    for server in servers:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
    told = {"ports": [server.server_address[1] for server in servers], "told": scrapes.told}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
