"""Plays a recorded engine: a small HTTP server that answers what the engine answered at that moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from drill.recording import Recording

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Replayer:
    """Serves ``recording`` on ``http://127.0.0.1:<free port>/metrics`` until closed.

    The recording stands at second ``begin`` until ``play``, then runs, and stands at its end. ``clock``
    gives seconds that never jump. ``speed`` above 1 makes time pass faster in the recording than for
    whoever reads it: every rate is read that many times too high, every duration too short.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        begin: float = 0.0,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recording = recording
        self._begin = begin
        self._speed = speed
        self._clock = clock
        self._playing_since: float | None = None
        self._reads = 0
        self._was_read = threading.Condition()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="replay", daemon=True
        )

    def __enter__(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where the metrics are."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/metrics"

    @property
    def reads(self) -> int:
        """How often ``/metrics`` was asked for."""
        return self._reads

    @property
    def position(self) -> float:
        """The second of the recording that is served now."""
        since = self._playing_since
        passed = 0.0 if since is None else (self._clock() - since) * self._speed
        return min(self._begin + passed, max(self._begin, self._recording.seconds))

    def play(self) -> None:
        """Let the recording run from now on."""
        self._playing_since = self._clock()

    def wait_for_read(self, timeout: float) -> bool:
        """Wait for the next read of ``/metrics``, at most ``timeout`` seconds; False when none came."""
        with self._was_read:
            before = self._reads
            return self._was_read.wait_for(lambda: self._reads > before, timeout)

    def answer(self) -> bytes:
        """What ``/metrics`` says now; counted as a read."""
        body = self._recording.scrape_at(self.position).body
        with self._was_read:
            self._reads += 1
            self._was_read.notify_all()
        return body


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a reader that keeps its connection open must not hold up the end

    def __init__(self, replayer: Replayer) -> None:
        self.replayer = replayer
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a reader that hung up is its own business."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body go out in two writes; together they would wait for an ACK
    server: _Server

    def do_GET(self) -> None:
        """Answer with the page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer as for GET, without the body."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        status, kind, body = HTTPStatus.OK, _METRICS_TYPE, b""
        if self.path.partition("?")[0] == "/metrics":
            body = self.server.replayer.answer()
        else:
            status, kind, body = HTTPStatus.NOT_FOUND, "text/plain", b"the metrics are at /metrics\n"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Stay quiet: the terminal belongs to the demo."""
