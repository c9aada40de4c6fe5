"""What the tests of sources share: a source on a server, read once, and what became of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from exporter.engine_settings import EngineSettings
from exporter.observation import Observation
from exporter.sample import EngineSample
from exporter.sources.engine import EngineSource
from tests.support.captures import fixture
from tests.support.http_servers import Behaviour, serving

Result = TypeVar("Result")

PAGE = fixture("vllm-0.32.0/113.prom")
HANGING_SECONDS = 30.0
"""What takes this long hangs, however busy the machine is; nothing that works is held against it."""


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run ``work``, and check that nothing of it is left on the loop."""

    async def checked() -> Result:
        result = await work
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        return result

    return asyncio.run(checked())


def source(
    url: str,
    *,
    interval: float = 0.05,
    clock: Callable[[], float] = time.time,
    **settings: Any,  # noqa: ANN401 - any setting
) -> EngineSource:
    return EngineSource(
        EngineSettings(url, **{"deadline_seconds": HANGING_SECONDS, **settings}), clock, interval
    )


async def read(engine: EngineSource) -> Observation:
    await engine.read_once()
    return engine.observe()


def observed(behaviour: Behaviour, **settings: Any) -> Observation:  # noqa: ANN401 - any setting
    """One read of a server with this behaviour."""

    async def work() -> Observation:
        async with serving(behaviour) as server:
            return await read(source(server.url, **settings))

    return run(work())


def failed(observation: Observation) -> tuple[str, str]:
    """``(reason, line)`` of a read that failed, once; checks that it looks like one."""
    status = observation.status
    assert not status.answering
    assert observation.engine is None
    assert status.last_at is None
    ((reason, count),) = status.errors
    assert count == 1
    assert "\n" not in status.last_error
    assert len(status.last_error) < 500
    return reason, status.last_error


@asynccontextmanager
async def running(*engines: EngineSource) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(engine.run()) for engine in engines]
    try:
        yield
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANGING_SECONDS):
        while not condition():  # noqa: ASYNC110 - a source tells nobody when it has read
            await asyncio.sleep(0.005)


def sample(engine: EngineSource) -> EngineSample:
    found = engine.observe().engine
    assert found is not None
    return found
