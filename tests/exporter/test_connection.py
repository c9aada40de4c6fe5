"""Callers that ask for nothing, or for half of something, and those beside them who ask as they should."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from starlette.types import Receive, Scope, Send

from exporter import connection
from exporter.service import listening_socket, make_server

BOUND_SECONDS = 0.5
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", BOUND_SECONDS)


async def _pages(scope: Scope, receive: Receive, send: Send) -> None:
    """A body is read to its end; ``/slow`` takes three times as long over its answer as a request may."""
    while (await receive()).get("more_body"):
        pass
    body = b"whole"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    if scope["path"] == "/slow":
        await asyncio.sleep(3 * BOUND_SECONDS)
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Callable[[bytes], Awaitable[Connection]]]:
    server, listener = make_server(_pages), listening_socket("127.0.0.1", 0)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    opened: list[asyncio.StreamWriter] = []

    async def saying(text: bytes) -> Connection:
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        opened.append(writer)
        writer.write(text)
        await writer.drain()
        return reader, writer

    try:
        yield saying
    finally:
        for writer in opened:
            writer.transport.abort()
        server.stop()
        await task


async def _answer(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(20):
        head = await reader.readuntil(b"\r\n\r\n")
        return head.split(b" ")[1] + b" " + await reader.readexactly(5)


async def _is_ended(reader: asyncio.StreamReader) -> bool:
    """Whether the server lets go of it, within a time that is long beside the bound."""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(20):
            await reader.read()
    return True


async def _drips(writer: asyncio.StreamWriter) -> None:
    """A byte of a head now and then, without end."""
    with contextlib.suppress(ConnectionError):
        while not writer.is_closing():
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(BOUND_SECONDS / 10)


@pytest.mark.parametrize("said", [b"", b"G", GET[:-2], POST, POST + b"half"])
def test_who_does_not_come_to_an_end_is_let_go(said: bytes) -> None:
    async def run() -> float:
        async with serving() as saying:
            began = time.monotonic()
            reader, _ = await saying(said)
            assert await _is_ended(reader)
            return time.monotonic() - began

    assert asyncio.run(run()) >= 0.9 * BOUND_SECONDS


def test_who_sends_a_byte_now_and_then_is_no_better_off() -> None:
    async def run() -> None:
        async with serving() as saying:
            reader, writer = await saying(GET[:-2] + b"X: ")
            dripping = asyncio.create_task(_drips(writer))
            assert await _is_ended(reader)
            writer.close()
            await dripping

    asyncio.run(run())


def test_a_kept_connection_may_rest_and_is_bound_again_from_its_next_byte() -> None:
    async def run() -> None:
        async with serving() as saying:
            reader, writer = await saying(GET)
            for _ in range(2):
                assert await _answer(reader) == b"200 whole"
                await asyncio.sleep(2 * BOUND_SECONDS)
                writer.write(GET)
            assert await _answer(reader) == b"200 whole"
            writer.write(GET[:8])
            assert await _is_ended(reader)

    asyncio.run(run())


def test_an_answer_that_takes_long_is_not_cut_off() -> None:
    async def run() -> None:
        async with serving() as saying:
            for said in (GET, POST + b"0123456789"):
                reader, _ = await saying(said.replace(b" / ", b" /slow "))
                assert await _answer(reader) == b"200 whole"

    asyncio.run(run())


def test_in_a_crowd_those_who_have_waited_longest_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CROWD", 20)
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 60.0)

    async def run() -> None:
        async with serving() as saying:
            slow, _ = await saying(GET.replace(b" / ", b" /slow "))
            crowd = []
            for _ in range(60):
                crowd.append(await saying(GET[:20]))
                await asyncio.sleep(0)
            for _ in range(5):
                reader, _ = await saying(GET)
                assert await _answer(reader) == b"200 whole"
            for reader, _ in crowd[:40]:
                assert await _is_ended(reader)
            assert await _answer(slow) == b"200 whole"
            assert not crowd[-1][0].at_eof()

    asyncio.run(run())
