"""The sidecar as a running process: sources, cycle and server in one loop, and a clean end."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Coroutine, Iterable
from typing import Any

from exporter.ending import CANCEL_SECONDS
from exporter.live import LiveCycle, keep_running
from exporter.service import Server

COLLECT_EVERY = 20_000
"""Objects made and not yet freed before the collector looks for cycles. Python's 700 are reached several times in each
cycle, of which hardly anything is ever cyclic: the collector took a tenth of all CPU."""


async def serve(
    cycle: LiveCycle[Any],
    server: Server,
    listener: socket.socket,
    interval_seconds: float,
    beside: Iterable[Coroutine[Any, Any, None]] = (),
) -> None:
    """Run sources, cycle and server until SIGTERM or SIGINT, and what goes on ``beside`` them.

    Raises what ended the cycle or the server.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    others = [loop.create_task(keep_running(source)) for source in cycle.sources]
    others += [loop.create_task(each) for each in beside]
    cycle.run_once()
    # What is loaded by now stays for good; without this the collector would walk it again and again,
    # each time for longer than a whole cycle takes.
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY, *gc.get_threshold()[1:])
    ticking = loop.create_task(cycle.run(interval_seconds))
    serving = loop.create_task(server.serve(sockets=[listener]))
    ended, _ = await asyncio.wait({ticking, serving}, return_when=asyncio.FIRST_COMPLETED)
    for task in (ticking, *others):
        task.cancel()
    await asyncio.wait({ticking, *others}, timeout=CANCEL_SECONDS)
    for task in ended:
        task.result()
