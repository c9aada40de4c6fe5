"""An address that answers, refuses, and stays its owner's meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import pytest

from drill.showing.port import Answer, Port

GET = b"GET /metrics?x=1 HTTP/1.1\r\nHost: here\r\n\r\n"


async def says_the_path(path: str) -> Answer:
    await asyncio.sleep(0)
    return Answer(HTTPStatus.OK, path.encode())


def with_port(story: Callable[[Port], Awaitable[None]]) -> None:
    async def run() -> None:
        port = Port("127.0.0.1", 0, says_the_path)
        try:
            await asyncio.wait_for(story(port), 20)
        finally:
            port.release()
            await asyncio.sleep(0.01)  # for transports to be told that they are closed

    asyncio.run(run())


async def sent(port: Port, *requests: bytes) -> bytes:
    """Everything that comes back on one connection, until the server closes it or the requests are answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    writer.write(b"".join(requests))
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


def test_it_answers_several_requests_on_one_connection() -> None:
    async def story(port: Port) -> None:
        await port.open()
        answer = await sent(port, GET, GET.replace(b"/metrics", b"/other"))
        assert answer.count(b"HTTP/1.1 200 OK\r\n") == 2
        assert answer.count(b"Connection: keep-alive\r\n") == 2
        assert answer.index(b"\r\n\r\n/metrics") < answer.index(b"\r\n\r\n/other")

    with_port(story)


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"200 OK", b""),
        (b"GET /metrics HTTP/1.0\r\n\r\n", b"200 OK", b"/metrics"),
        (b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n", b"200 OK", b"/metrics"),
        (
            b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
            b"405 Method Not Allowed",
            b"GET or HEAD\n",
        ),
        (b"what is this\r\n\r\n", b"400 Bad Request", b"this is HTTP/1.1\n"),
    ],
)
def test_the_answer_to(request_: bytes, status: bytes, body: bytes) -> None:
    async def story(port: Port) -> None:
        await port.open()
        head, _, told = (await sent(port, request_)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 " + status)
        assert told == body

    with_port(story)


@pytest.mark.parametrize("request_", [b"GET " + b"x" * 100_000, b"GET /metrics HTTP/1.1\r\n", b""])
def test_who_sends_no_request_gets_no_answer(request_: bytes) -> None:
    async def story(port: Port) -> None:
        await port.open()
        with contextlib.suppress(ConnectionError):  # broken off with bytes unread
            assert await sent(port, request_) == b""
        assert b"200 OK" in await sent(port, GET)

    with_port(story)


def test_it_refuses_while_closed_breaks_off_who_is_connected_and_opens_at_the_same_port() -> None:
    async def story(port: Port) -> None:
        number = port.port
        with pytest.raises(ConnectionRefusedError):
            await sent(port, GET)
        for _ in range(3):
            await port.open()
            await port.open()
            reader, writer = await asyncio.open_connection("127.0.0.1", number)
            writer.write(GET)
            await reader.readuntil(b"/metrics")
            port.close()
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
            with pytest.raises(ConnectionRefusedError):
                await sent(port, GET)
        assert port.port == number

    with_port(story)


def test_a_port_in_use_cannot_be_had() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        Port("127.0.0.1", taken.getsockname()[1], says_the_path)
