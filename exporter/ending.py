"""How a command that runs a loop ends: at once, whatever thread hangs. Loads no server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

Result = TypeVar("Result")

CANCEL_SECONDS = 0.2
"""What a task gets to end in once it is told to; SIGTERM promises one second in all."""
THREAD_SECONDS = 0.05


def run_loop(main: Coroutine[Any, Any, Result]) -> Result:
    """Run ``main``, as ``asyncio.run`` does, but wait for no thread afterwards.

    A name lookup that hangs sits in a thread that nobody can end; ``asyncio.run`` would wait for it.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        rest = asyncio.all_tasks(loop)
        for task in rest:
            task.cancel()
        if rest:
            loop.run_until_complete(asyncio.wait(rest, timeout=CANCEL_SECONDS))
        loop.close()


def leave(code: int) -> NoReturn:
    """End the process with ``code``, even where a thread hangs."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(THREAD_SECONDS)
            if thread.is_alive():
                logging.shutdown()
                for stream in (sys.stdout, sys.stderr):
                    with contextlib.suppress(OSError, ValueError):
                        stream.flush()
                os._exit(code)
    sys.exit(code)
