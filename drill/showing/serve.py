"""Plays a scene on a stage at its pace. Seconds to come are worked out in a thread, so that pages answer at once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from drill.showing.pages import Pages, Performance
from drill.showing.stage import Stage

_WORTH_A_WORD_SECONDS = 1.0


class Late(NamedTuple):
    """In seconds of the clock: in all, and the longest that a second of the drill took since last said."""

    behind_seconds: float
    took_seconds: float


async def perform(
    performance: Performance,
    stage: Stage,
    speed: float,
    told: Callable[[Pages, Late], None],
    slow: Callable[[Late], None],
) -> None:
    """To the scene's end: each second lasts 1 / ``speed`` of the clock's, or longer where the next isn't ready by then.

    ``told``: this is on now. ``slow``: it is more than 1 s late, or twice as late as when last said. Raises OSError
    where a port can't be had again.
    """
    loop = asyncio.get_running_loop()
    behind, word_at, longest = 0.0, _WORTH_A_WORD_SECONDS, 0.0
    coming = asyncio.create_task(_worked_out(performance))
    try:
        pages, took = await coming
        due = loop.time()
        while pages is not None:
            coming = asyncio.create_task(_worked_out(performance))
            await stage.show(pages)
            longest = max(longest, took)
            told(pages, Late(behind, longest))
            if behind >= word_at:
                slow(Late(behind, longest))
                word_at, longest = 2 * behind, 0.0
            due += 1 / speed
            await asyncio.sleep(due - loop.time())
            pages, took = await coming
            # what is late stays late: rates above the drill's own would be wrong as well
            late = loop.time() - due
            if pages is not None and late > _JITTER_SECONDS:
                behind += late
                due += late
    finally:
        coming.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await coming


_JITTER_SECONDS = 0.05
"""No later than a busy loop wakes up: caught up with at once."""


async def _worked_out(performance: Performance) -> tuple[Pages | None, float]:
    loop = asyncio.get_running_loop()
    began = loop.time()
    pages = await asyncio.to_thread(performance.next)
    return pages, loop.time() - began


def run_until_signal(main: Coroutine[Any, Any, None]) -> bool:
    """Run it; False where SIGINT or SIGTERM ended it, which takes no longer than one second of the drill."""

    async def run() -> bool:
        loop, task = asyncio.get_running_loop(), asyncio.create_task(main)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            return False
        return True

    return asyncio.run(run())
