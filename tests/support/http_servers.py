"""HTTP servers on loopback sockets that behave badly, each in a way that has been seen of a real one."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field

TEXT = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Exchange:
    """One request and the way to answer it. ``connection`` and ``turn`` (on it) count from 1."""

    server: Server
    connection: int
    turn: int
    target: str
    headers: dict[str, str]
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()
        self.server.sent += len(data)

    def close(self) -> None:
        self.writer.close()


Behaviour = Callable[[Exchange], Awaitable[None]]


@dataclass(slots=True)
class Server:
    """What a test sees of a running server. ``behaviour`` may be exchanged between two requests."""

    behaviour: Behaviour
    port: int = 0
    scheme: str = "http"
    host: str = "127.0.0.1"
    connections: int = 0
    sent: int = 0
    requests: list[Exchange] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}/metrics"


@contextlib.asynccontextmanager
async def serving(
    behaviour: Behaviour, *, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    """Serve on loopback; at the end, whatever still hangs is broken off."""
    server = Server(behaviour, scheme="https" if tls else "http")
    handlers: set[asyncio.Task[None]] = set()
    writers: set[asyncio.StreamWriter] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        writers.add(writer)
        server.connections += 1
        connection = server.connections
        try:
            turn = 0
            while not writer.is_closing():
                start = await reader.readexactly(1)
                if not start.isalpha():  # TLS, say
                    await refuse(writer)
                    break
                lines = (start + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                turn += 1
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in lines[1:-2])
                }
                exchange = Exchange(server, connection, turn, lines[0].split()[1], headers, writer)
                server.requests.append(exchange)
                await server.behaviour(exchange)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            handlers.discard(task)

    listener = await asyncio.start_server(handle, server.host, port, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(handlers):
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await listener.wait_closed()
        await asyncio.sleep(0.01)  # for the transports to be told that they are closed


async def refuse(writer: asyncio.StreamWriter) -> None:
    writer.write(head("400 Bad Request", content_length="0"))
    writer.close()
    await writer.wait_closed()


def head(status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def page(body: bytes, status: str = "200 OK", content_type: str = TEXT, **headers: str) -> Behaviour:
    """An ordinary answer, on a connection that is kept."""
    answer = head(status, content_type=content_type, content_length=str(len(body)), **headers) + body

    async def behave(exchange: Exchange) -> None:
        await exchange.send(answer)

    return behave


def raw(answer: bytes) -> Behaviour:
    """These bytes, whatever they are, and the connection closed."""

    async def behave(exchange: Exchange) -> None:
        await exchange.send(answer)
        exchange.close()

    return behave


def chunked(body: bytes, size: int) -> Behaviour:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(head(content_type=TEXT, transfer_encoding="chunked"))
        for start in range(0, len(body), size):
            piece = body[start : start + size]
            await exchange.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        await exchange.send(b"0\r\n\r\n")

    return behave


def packed(body: bytes) -> Behaviour:
    return page(gzip.compress(body), content_encoding="gzip")


def redirect(target: str) -> Behaviour:
    return page(b"", "302 Found", location=target)


async def hang(exchange: Exchange) -> None:
    """Takes the request and never says a word."""
    await asyncio.sleep(3600)
    await exchange.send(b"")


def slow_loris(body: bytes, pause_seconds: float) -> Behaviour:
    """A byte, a pause, a byte: never idle for long, and never done."""

    async def behave(exchange: Exchange) -> None:
        await exchange.send(head(content_type=TEXT, content_length=str(len(body))))
        for place in range(len(body)):
            await exchange.send(body[place : place + 1])
            await asyncio.sleep(pause_seconds)

    return behave


def half_closed(body: bytes) -> Behaviour:
    """Half of the body, then end of file, while the other direction stays open."""

    async def behave(exchange: Exchange) -> None:
        await exchange.send(head(content_type=TEXT, content_length=str(len(body))) + body[: len(body) // 2])
        exchange.writer.write_eof()
        await asyncio.sleep(3600)

    return behave


async def slam(exchange: Exchange) -> None:
    """Closes as soon as it has read the request."""
    exchange.close()
    await asyncio.sleep(0)


def closes_on_reuse(behaviour: Behaviour) -> Behaviour:
    """Answers the first request of each connection; closes at the second without a byte."""

    async def behave(exchange: Exchange) -> None:
        await (slam if exchange.turn > 1 else behaviour)(exchange)

    return behave


def closes_after(behaviour: Behaviour) -> Behaviour:
    """Promises to keep the connection and closes it, as servers with a short idle time do."""

    async def behave(exchange: Exchange) -> None:
        await behaviour(exchange)
        exchange.close()

    return behave


def flood(size: int, *, announced: bool) -> Behaviour:
    """``size`` bytes of comments, made as they go; ``announced`` by a Content-Length or chunk by chunk."""
    piece = (b"# " + b"x" * 62 + b"\n") * 1024

    async def behave(exchange: Exchange) -> None:
        length = {"content_length": str(size)} if announced else {"transfer_encoding": "chunked"}
        await exchange.send(head(content_type=TEXT, **length))
        for _ in range(size // len(piece)):
            await exchange.send(piece if announced else b"%x\r\n%s\r\n" % (len(piece), piece))

    return behave


def bomb(size: int) -> Behaviour:
    """``size`` bytes in a thousandth of that, and it says what it is."""

    def pieces() -> Iterator[bytes]:
        packing = zlib.compressobj(9, wbits=31)
        for _ in range(size >> 20):
            yield packing.compress(b"#" * (1 << 20))
        yield packing.flush()

    return page(b"".join(pieces()), content_encoding="gzip")


def guarded(behaviour: Behaviour, authorization: str) -> Behaviour:
    """401 unless the request bears exactly this Authorization."""

    async def behave(exchange: Exchange) -> None:
        allowed = exchange.headers.get("authorization") == authorization
        await (behaviour if allowed else page(b"no", "401 Unauthorized"))(exchange)

    return behave
