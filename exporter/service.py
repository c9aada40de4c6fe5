"""The sidecar's pages: ``/metrics``, ``/-/healthy``, ``/-/ready`` and a landing page for people.

No answer waits for a source or a cycle: each shows the newest publication as it stands.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from exporter.connection import PatientProtocol
from exporter.landing import CONTENT_SECURITY_POLICY, landing_page
from exporter.observation import ENGINE
from exporter.publication import Board
from exporter.render import negotiate
from exporter.web_config import BasicAuth, Passwords

_KEEP_ALIVE_SECONDS = 75
"""Longer than any usual scrape interval: a scrape each minute need not shake hands each time."""
_MOST_CONNECTIONS = 1000
_GRACE_SECONDS = 0.5
"""What a client that is slow to take its answer gets at the end; SIGTERM promises one second in all."""


class MetricsPage:
    """``/metrics`` as a bare ASGI application: it costs no more than an answer that never changes."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one scrape."""
        accept = encodings = b""
        for name, value in scope["headers"]:
            if name == b"accept":
                accept = accept + b"," + value if accept else value
            elif name == b"accept-encoding":
                encodings = encodings + b"," + value if encodings else value
        wanted = negotiate(accept.decode("latin-1"))
        zipped = accepts_gzip(encodings)
        body = self._board.scraped(wanted, time.monotonic(), zipped=zipped)
        headers = [
            (b"content-type", wanted.content_type.encode("latin-1")),
            (b"content-length", b"%d" % len(body)),
            (b"vary", b"Accept, Accept-Encoding"),
        ]
        if zipped:
            headers.append((b"content-encoding", b"gzip"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@lru_cache(maxsize=64)
def accepts_gzip(header: bytes) -> bool:
    """Whether an ``Accept-Encoding`` header takes gzip; a weight of 0 says no."""
    for choice in header.decode("latin-1").lower().split(","):
        coding, _, parameters = choice.partition(";")
        if coding.strip() in {"gzip", "x-gzip"}:
            weight = parameters.replace(" ", "").removeprefix("q=")
            return weight.strip("0.") != "" or not weight
    return False


def not_ready_because(board: Board) -> str | None:
    """Why no engine is fresh, in one line; None when one is."""
    newest = board.newest
    if newest.snapshot.ready:
        return None
    engines = [each for each in newest.statuses if each.kind == ENGINE]
    if not engines:
        return "no engine has been looked at yet"
    reasons = (f"{each.name}: {each.last_error or 'has not answered yet'}" for each in engines)
    return "no engine is fresh: " + "; ".join(reasons)


def application(
    board: Board, passwords: Passwords | None = None, more: Iterable[BaseRoute] = ()
) -> Starlette:
    """Make the pages over ``board`` and ``more`` of them, all behind ``passwords`` where there are any."""

    async def healthy(_request: Request) -> Response:
        return PlainTextResponse("healthy\n")

    async def ready(_request: Request) -> Response:
        reason = not_ready_because(board)
        return PlainTextResponse(f"{reason or 'ready'}\n", 200 if reason is None else 503)

    async def landing(_request: Request) -> Response:
        headers = {
            "Content-Security-Policy": CONTENT_SECURITY_POLICY,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        return Response(landing_page(board.newest), media_type="text/html", headers=headers)

    return Starlette(
        routes=[
            Route("/metrics", MetricsPage(board), methods=["GET"]),
            Route("/-/healthy", healthy),
            Route("/-/ready", ready),
            Route("/", landing),
            *more,
        ],
        middleware=[Middleware(BasicAuth, passwords=passwords)] if passwords else [],
    )


class Server(uvicorn.Server):
    """uvicorn in a loop that is not its own: signals are the business of whoever runs the loop.

    It wakes once a second, for the Date header, and at the end: uvicorn's own loop looks ten times a
    second whether it is to end, a quarter of all the CPU a sidecar takes.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    async def main_loop(self) -> None:
        """Run until ``stop``."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._ending.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    def stop(self) -> None:
        """Close what is idle, give the rest a moment, then end."""
        self.should_exit = True
        self._ending.set()


def make_server(
    pages: ASGIApp,
    *,
    tls: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
) -> Server:
    """Make the server; ``await server.serve(sockets=[...])`` runs it until ``stop``."""
    config = uvicorn.Config(
        pages,
        loop="none",
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        headers=list((headers or {}).items()),
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        limit_concurrency=_MOST_CONNECTIONS,
        ssl_context_factory=(lambda _config, _default: tls) if tls else None,
    )
    # Declared as whole seconds, but it only ever reaches asyncio.wait_for.
    config.timeout_graceful_shutdown = _GRACE_SECONDS  # type: ignore[assignment]
    return Server(config)


def listening_socket(host: str, port: int) -> socket.socket:
    """Bind ``host``:``port``, all addresses where ``host`` is empty. Raises OSError."""
    listener = _bound(host, port)
    # Connections inherit it. asyncio sets it only on sockets that were made with the protocol's number;
    # without it the body of each answer waits 40 ms for the client to acknowledge the head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _bound(host: str, port: int) -> socket.socket:
    if not host:
        if socket.has_dualstack_ipv6():
            with contextlib.suppress(OSError):  # IPv6 may be switched off: then IPv4 alone
                return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("0.0.0.0", port))  # noqa: S104 - asked for: no host
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(address, family=family)
