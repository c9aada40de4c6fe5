"""A proxy on loopback that swallows disconnects: who leaves, leaves it alone; the engine never hears of it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

_CHUNK_BYTES = 65_536
IDLE_SECONDS = 2.0
"""An engine that is silent for so long has said all it had to say to a client that is gone."""


@dataclass(frozen=True, slots=True)
class Swallower:
    """The running proxy; ``port`` is where clients come to."""

    port: int
    _loop: asyncio.AbstractEventLoop
    _released: asyncio.Event

    def pass_on(self) -> None:
        """From now on the engine hears of clients that leave, and of all that have left."""
        self._loop.call_soon_threadsafe(self._released.set)


@contextlib.contextmanager
def swallowing(target: int) -> Iterator[Swallower]:
    """Forward a loopback port to ``target`` in a thread."""
    loop = asyncio.new_event_loop()
    released = asyncio.Event()
    server = loop.run_until_complete(_serve(target, released))
    thread = threading.Thread(target=loop.run_forever, name="swallow", daemon=True)
    thread.start()
    try:
        yield Swallower(int(server.sockets[0].getsockname()[1]), loop, released)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.close()


async def _serve(target: int, released: asyncio.Event) -> asyncio.Server:
    async def handle(near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        far_in, far_out = await asyncio.open_connection("127.0.0.1", target)
        asking = asyncio.ensure_future(_forward(near_in, far_out))
        answering = asyncio.ensure_future(_answer(far_in, near_out, asking))
        leaving = asyncio.ensure_future(_left(asking, released))
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in (asking, answering, leaving):
            task.cancel()
        for each in (near_out, far_out):
            each.close()

    return await asyncio.start_server(handle, "127.0.0.1", 0)


async def _left(asking: asyncio.Future[None], released: asyncio.Event) -> None:
    """Until the client is gone and the engine may hear of it."""
    await asyncio.wait({asking})
    await released.wait()


async def _forward(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """To the engine, for as long as the client is there; its end is not passed on."""
    with contextlib.suppress(OSError):
        while data := await source.read(_CHUNK_BYTES):
            sink.write(data)
            await sink.drain()


async def _answer(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, asking: asyncio.Future[None]
) -> None:
    """To the client, and to nobody once it is gone."""
    with contextlib.suppress(OSError, TimeoutError):
        while True:
            async with asyncio.timeout(IDLE_SECONDS if asking.done() else None):
                reading = asyncio.ensure_future(source.read(_CHUNK_BYTES))
                await asyncio.wait({reading, asking}, return_when=asyncio.FIRST_COMPLETED)
                data = await reading
            if not data:
                return
            if not sink.is_closing() and not asking.done():
                with contextlib.suppress(OSError):
                    sink.write(data)
                    await sink.drain()
