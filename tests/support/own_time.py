"""An event loop whose time passes only while nothing else is to be done: seconds cost nothing and are exact."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Waiting(selectors.DefaultSelector):
    """Instead of waiting for a timer it says how long that would have been."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Without a timer there is only the outside to wait for, a thread that comes back, say.
        events = super().select(timeout if timeout is None else 0)
        if timeout is not None and timeout > 0 and not events:
            self.passed += timeout
        return events


class OwnTime(asyncio.SelectorEventLoop):
    """For code that only sleeps; what waits for sockets or threads would find its timers past."""

    def __init__(self) -> None:
        self._waiting = _Waiting()
        super().__init__(self._waiting)

    def time(self) -> float:
        return self._waiting.passed

    def busy(self, seconds: float) -> None:
        """Let time pass as if the loop had been held up."""
        self._waiting.passed += seconds


def own_loop() -> OwnTime:
    """The running loop, where it is one that :func:`run` made."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, OwnTime)
    return loop


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """``asyncio.run`` in such a loop."""
    with asyncio.Runner(loop_factory=OwnTime) as runner:
        return runner.run(main)
