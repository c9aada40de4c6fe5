"""A KV event source that runs in a loop of its own, as tests see it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from exporter.kv_events_sample import KvEventsSample
from exporter.kv_events_settings import KvEventsSettings
from exporter.observation import Observation
from exporter.sources.kv_events import KvEventsSource

PATIENCE_SECONDS = 60.0


def free_ports(count: int) -> list[int]:
    """Loopback ports in a row that nobody listens on."""
    while True:
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            start = int(first.getsockname()[1])
        try:
            for port in range(start, start + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            continue
        return list(range(start, start + count))


class Watched:
    """A source that runs in a loop of its own, seen from a test."""

    def __init__(self, settings: KvEventsSettings) -> None:
        self.source = KvEventsSource("e", settings, time.time)
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def until(self, wanted: Callable[[Observation], bool]) -> Observation:
        """What it shows once it shows what is wanted."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            shown = self.source.observe()
            if wanted(shown):
                return shown
            time.sleep(0.02)
        raise AssertionError(f"never came; what it shows: {self.source.observe()}")

    def connected(self) -> Observation:
        return self.until(lambda shown: shown.status.answering)

    def counted(self, batches: int) -> KvEventsSample:
        """The counts once so many batches are in, and nothing more has come for a while after."""
        self.until(lambda shown: sum(each.batches_total for each in shown.kv_events) >= batches)
        time.sleep(0.6)
        (sample,) = self.source.observe().kv_events
        return sample

    def stop(self) -> None:
        """Cancel it."""
        if self._task:
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        async def main() -> None:
            self._task = asyncio.ensure_future(self.source.run())
            await asyncio.wait({self._task})

        self._loop.run_until_complete(main())
        self._loop.close()


@contextmanager
def watching(port: int, replay_port: int = 0, *, ranks: int = 1, topic: str = "") -> Iterator[Watched]:
    replay = f"tcp://127.0.0.1:{replay_port}" if replay_port else None
    watched = Watched(KvEventsSettings(f"tcp://127.0.0.1:{port}", replay, topic, ranks))
    try:
        yield watched
    finally:
        watched.stop()


def serve_otherwise(server: socket.socket, answer: bytes | None) -> None:
    """Take what is said and answer, or keep silent."""
    kept = []
    with contextlib.suppress(OSError):  # the test is over
        while True:
            connection, _ = server.accept()
            kept.append(connection)
            if answer:
                with connection, contextlib.suppress(OSError):
                    connection.recv(1024)
                    connection.sendall(answer)
