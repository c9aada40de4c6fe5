"""The KV events of one engine as a source: heard in a thread of its own, shown to the cycle."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from exporter.kv_events.reception import Reception
from exporter.kv_events_settings import KIND, KvEventsSettings, source_name
from exporter.observation import Observation, SourceStatus
from exporter.sources.failure import Reason

if TYPE_CHECKING:
    from exporter.sources.kv_events_thread import Listener

_STOP_SECONDS = 0.1
_CONNECT_SECONDS = 5.0
"""Longer than it takes to be told that what answers doesn't speak ZeroMQ."""
_LOOK_SECONDS = 0.05

_log = logging.getLogger(__name__)

_NOT_INSTALLED = (
    "kv_events is set and pyzmq is not installed; install it (docs/kv-events.md), or take kv_events out of the"
    " settings. All other signals are there"
)


class KvEventsSource:
    """The events of one engine, from its settings on; the counts go on over whatever breaks.

    ``clock`` gives seconds since the epoch and never jumps.
    """

    def __init__(self, engine: str, settings: KvEventsSettings, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._settings = settings
        self._clock = clock
        self._listener: Listener | None = None
        self._receptions = tuple(Reception() for _ in range(settings.ranks))
        self._last_at: float | None = None
        self._lacks_library = False

    @property
    def name(self) -> str:
        """The engine's name, and that it is its events."""
        return source_name(self._engine)

    def observe(self) -> Observation:
        """The newest counts, however old, and whether all publishers are connected."""
        if self._lacks_library:
            errors = ((Reason.NOT_INSTALLED.value, 1),)
            return Observation(
                SourceStatus(self.name, KIND, answering=False, last_at=None, read_seconds=None, errors=errors,
                             last_error=_NOT_INSTALLED)
            )  # fmt: skip
        if self._listener is None:
            return Observation(
                SourceStatus(self.name, KIND, answering=False, last_at=None, read_seconds=None)
            )
        heard = self._listener.newest
        self._last_at = max((sample.at for sample in heard.samples), default=self._last_at)
        status = SourceStatus(
            self.name, KIND, heard.is_whole, self._last_at, None, heard.failures, heard.last_failure
        )
        return Observation(status, kv_events=heard.samples)

    async def run(self) -> None:
        """Listen until cancelled. Raises what breaks the thread: a bug."""
        if not self._has_library():
            await asyncio.Event().wait()
        await self._listening(asyncio.get_running_loop().create_future())

    async def read_once(self) -> None:
        """Listen until connected or told why not, for five seconds at most."""
        if not self._has_library():
            return
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(self._listening(ended))
        until = time.monotonic() + _CONNECT_SECONDS
        while time.monotonic() < until and not self._has_told():
            await asyncio.wait({task}, timeout=_LOOK_SECONDS)
        task.cancel()
        await asyncio.wait({task})

    def _has_told(self) -> bool:
        status = self.observe().status
        return status.answering or bool(status.last_error)

    async def _listening(self, ended: asyncio.Future[None]) -> None:
        from exporter.sources.kv_events_thread import Listener  # noqa: PLC0415 -- needs pyzmq

        loop = asyncio.get_running_loop()

        def end(error: BaseException | None) -> None:
            if not ended.done():
                ended.set_exception(error) if error else ended.set_result(None)

        def over(error: BaseException | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(end, error)

        listener = Listener(self._engine, self._settings, self._receptions, self._clock, over)
        self._listener = listener
        listener.start()
        try:
            await ended
        finally:
            listener.stop(_STOP_SECONDS)

    def _has_library(self) -> bool:
        self._lacks_library = importlib.util.find_spec("zmq") is None
        if self._lacks_library:
            _log.warning("engine %s: %s", self._engine, _NOT_INSTALLED)
        return not self._lacks_library
