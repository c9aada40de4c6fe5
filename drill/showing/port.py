"""One address that answers GET over HTTP/1.1, or refuses connections, as that of a process does which is dead."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import NamedTuple

_MOST_HEAD_BYTES = 16 * 1024
_IDLE_SECONDS = 75.0
TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Answer(NamedTuple):
    """A status and what comes with it."""

    status: HTTPStatus
    body: bytes
    content_type: str = TEXT


Handler = Callable[[str], Awaitable[Answer]]
"""Told the path without a query."""


class Port:
    """``host``:``port``, 0 for a free one, which is this object's from now on, listening or not.

    Raises OSError where somebody listens there, or nobody can.
    """

    def __init__(self, host: str, port: int, handler: Handler) -> None:
        self._host = host
        self._handler = handler
        self._held: socket.socket | None = self._bound(port)
        self.port: int = self._held.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._exchanges: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def url(self) -> str:
        """Without a path."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    @property
    def listens(self) -> bool:
        """Whether connections are taken."""
        return self._server is not None

    async def open(self) -> None:
        """Take connections from now on. Raises OSError."""
        if self._server is None:
            held, self._held = self._held, None
            listener = held or self._bound(self.port)
            self._server = await asyncio.start_server(self._serve, sock=listener, limit=_MOST_HEAD_BYTES)

    def close(self) -> None:
        """Refuse connections from now on, and break off those that there are, as a process does that dies."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        for task, writer in self._exchanges.items():
            task.cancel()
            writer.transport.abort()
        # bound without listening: connections are refused, and nobody else is given the port meanwhile
        with contextlib.suppress(OSError):
            self._held = self._bound(self.port)

    def release(self) -> None:
        """Close it for good."""
        self.close()
        if self._held is not None:
            self._held.close()
            self._held = None

    def _bound(self, port: int) -> socket.socket:
        family, kind, protocol, _, address = socket.getaddrinfo(
            self._host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
        return bound

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 -- for the type checker
        self._exchanges[task] = writer
        # whoever reads has gone, says nothing, or says what is no request; or the port was closed amid an answer
        with contextlib.suppress(
            OSError, EOFError, TimeoutError, asyncio.LimitOverrunError, asyncio.CancelledError
        ):
            while await self._exchange(reader, writer):
                pass
        del self._exchanges[task]
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer: whether another may come."""
        async with asyncio.timeout(_IDLE_SECONDS):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *rest = head.split("\r\n")
        method, _, target = first.partition(" ")
        path, _, version = target.partition(" ")
        fields = {
            name.strip().lower(): value.strip().lower() for name, _, value in (x.partition(":") for x in rest)
        }
        stays = version == "HTTP/1.1" and fields.get("connection") != "close"
        if fields.get("content-length", "0") != "0" or "transfer-encoding" in fields:
            stays = False  # its body isn't read
        if not version.startswith("HTTP/1."):
            answer, stays = Answer(HTTPStatus.BAD_REQUEST, b"this is HTTP/1.1\n"), False
        elif method not in {"GET", "HEAD"}:
            answer = Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"GET or HEAD\n")
        else:
            answer = await self._handler(path.partition("?")[0])
        writer.write(_head(answer, stays=stays) + (b"" if method == "HEAD" else answer.body))
        await writer.drain()
        return stays


def _head(answer: Answer, *, stays: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        f"Connection: {'keep-alive' if stays else 'close'}",
    ]
    if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
