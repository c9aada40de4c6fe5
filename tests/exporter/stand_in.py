"""A sidecar with the simplest source and cycle there can be: reads a URL over HTTP, says whether it answers."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import httpx

from exporter.clock import anchored_clock
from exporter.cycle import Snapshot, Value
from exporter.live import LiveCycle
from exporter.publication import Board
from exporter.sample import EngineSample
from exporter.service import application, listening_socket, make_server
from exporter.sidecar import leave, run_loop, serve
from exporter.signal import Confidence, Kind, Scope, Signal
from exporter.sources.source import Observation, SourceStatus

UP = Signal("stand_in_up", Kind.GAUGE, Scope.SOURCE, "Whether it answers.", Confidence.MEASURED, "", ())
BYTES = Signal(
    "stand_in_read_bytes_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Bytes read.",
    Confidence.ESTIMATE,
    "",
    (),
    peak=True,
)


UNREAD = SourceStatus("stand-in", "http", answering=False, last_at=None, read_seconds=None)


@dataclass(slots=True)
class HttpSource:
    url: str
    interval_seconds: float = 0.1
    name: str = "stand-in"
    status: SourceStatus = field(default_factory=lambda: UNREAD)
    sample: EngineSample | None = None

    async def run(self) -> None:
        while True:
            await self.read_once()
            await asyncio.sleep(self.interval_seconds)

    async def read_once(self) -> None:
        at = time.time()
        try:
            async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
                (await client.get(self.url)).raise_for_status()
        except httpx.HTTPError as error:
            self.status = replace(self.status, answering=False, last_error=repr(error))
        else:
            self.sample = EngineSample(at=at, engine=self.name, kind="http", ranks=())
            seconds = time.time() - at
            self.status = replace(
                self.status, answering=True, last_at=at, read_seconds=seconds, last_error=""
            )

    def observe(self) -> Observation:
        return Observation(self.status, self.sample)


def step(state: int, now: float, observations: Sequence[Observation]) -> tuple[int, Snapshot]:
    up = [
        Value(UP, (each.status.name,), float(each.status.answering), is_peak=False) for each in observations
    ]
    total = [
        Value(BYTES, ("stand-in",), float(state), is_peak=False),
        Value(BYTES, ("stand-in",), 7.5, is_peak=True),
    ]
    ready = any(each.status.answering for each in observations)
    return state + 1, Snapshot(at=now, values=(*up, *total), ready=ready)


def main(url: str, port: str) -> None:
    board = Board()
    cycle = LiveCycle([HttpSource(url)], step, 0, anchored_clock(), board)
    listener = listening_socket("127.0.0.1", int(port))
    print(listener.getsockname()[1], flush=True)  # noqa: T201 - whoever started it waits for this line
    run_loop(serve(cycle, make_server(application(board)), listener, 0.1))
    leave(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
