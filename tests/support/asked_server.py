"""An HTTP server on loopback that a function answers for, perhaps with what a real server says."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

import httpx


@dataclass(frozen=True)
class Request:
    """What was asked: headers in small letters, and the form of a POST as of a GET."""

    method: str
    path: str
    form: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Reply:
    """What is answered; ``cut_off``: so many bytes of the body are kept back as the connection closes."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_off: int = 0


Answering = Callable[[Request], Reply]


@dataclass
class AskedServer:
    """One that runs; ``answering`` may be exchanged while it does."""

    url: str
    answering: Answering
    requests: list[Request] = field(default_factory=list)

    def asked(self, path: str) -> list[Request]:
        """The requests for a path."""
        return [each for each in self.requests if each.path == path]


@contextlib.contextmanager
def answering(answer: Answering, tls: ssl.SSLContext | None = None) -> Iterator[AskedServer]:
    """Serve in threads."""
    server = AskedServer("", answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, path, dict(parse_qsl(query) + parse_qsl(body)), headers)
            server.requests.append(request)
            reply = server.answering(request)
            with contextlib.suppress(OSError):  # who asked may be gone
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: len(reply.body) - reply.cut_off])
            if reply.cut_off:
                self.close_connection = True

        do_GET = do_POST = _any  # noqa: N815 -- as the library calls them

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    listening = Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        listening.socket = tls.wrap_socket(listening.socket, server_side=True)
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{listening.server_address[1]}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def passing_on(url: str) -> Answering:
    """Answers as the server at ``url`` does."""

    # to look certificates up takes longer than most answers, and this is loopback without TLS
    client = httpx.Client(
        timeout=60.0,
        trust_env=False,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        limits=httpx.Limits(max_keepalive_connections=0),
    )

    def answer(request: Request) -> Reply:
        form = dict(request.form)
        if request.method == "GET":
            got = client.get(url + request.path, params=form)
        else:
            got = client.post(url + request.path, data=form)
        return Reply(got.content, got.status_code, {"Content-Type": got.headers.get("content-type", "")})

    return answer
