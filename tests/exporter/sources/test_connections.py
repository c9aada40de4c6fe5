"""One connection an engine: kept while it lasts, renewed without a failure, never left open."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from exporter.sources.engine import EngineSource
from tests.exporter.sources.reading import PAGE, run, running, sample, source, until
from tests.support.http_servers import (
    Behaviour,
    Server,
    closes_after,
    closes_on_reuse,
    hang,
    page,
    raw,
    serving,
    slam,
)


def test_one_connection_serves_all_reads() -> None:
    async def work() -> Server:
        async with serving(page(PAGE)) as server, running(source(server.url, interval=0.02)):
            await until(lambda: len(server.requests) >= 8)
        return server

    assert run(work()).connections == 1


@pytest.mark.parametrize("dropping", [closes_on_reuse, closes_after])
def test_a_kept_connection_that_the_server_closes_is_no_failure(
    dropping: Callable[[Behaviour], Behaviour],
) -> None:
    async def work() -> tuple[EngineSource, Server]:
        async with serving(dropping(page(PAGE))) as server:
            engine = source(server.url, interval=0.03)
            async with running(engine):
                await until(lambda: server.connections >= 5)
            return engine, server

    engine, server = run(work())
    assert engine.observe().status.errors == ()
    assert server.connections >= 5


def test_a_server_that_always_slams_the_door_is_tried_once_a_read() -> None:
    async def work() -> tuple[EngineSource, Server]:
        async with serving(page(PAGE)) as server:
            engine = source(server.url, interval=0.05)
            async with running(engine):
                await until(lambda: engine.observe().engine is not None)
                server.behaviour = slam
                await until(lambda: dict(engine.observe().status.errors).get("disconnected", 0) >= 4)
            return engine, server

    engine, server = run(work())
    failures = dict(engine.observe().status.errors)["disconnected"]
    # one good read, one try more for the connection that had been kept, one each for the rest
    assert len(server.requests) - failures <= 5


def test_cancelling_in_the_middle_of_a_read_leaves_nothing_open() -> None:
    async def work() -> None:
        async with serving(hang) as server, running(source(server.url), source(server.url)):
            await until(lambda: len(server.requests) == 2)

    run(work())


def test_reading_once_needs_no_closing() -> None:
    async def work() -> int:
        async with serving(raw(b"")) as server:
            engine = source(server.url)
            await engine.read_once()
            server.behaviour = page(PAGE)
            await engine.read_once()
            return len(sample(engine).ranks)

    assert run(work()) == 1
