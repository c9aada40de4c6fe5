"""The probes of one engine as a source: they connect, and each rank's newest message is kept."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from exporter.engine_settings import probe_source_name
from exporter.observation import Observation, SourceStatus
from exporter.probe_message import MessageError, read_message
from exporter.probe_sample import ProbeSample
from exporter.sources.failure import Reason, one_line
from exporter.sources.probe_socket import ProbeSocket, SocketError, peer_is_trusted

KIND = "probe"
MOST_CONNECTIONS = 256
MOST_MESSAGE_BYTES = 1 << 16

_LOOK_SECONDS = 5.0
"""How often the path is looked at: folders of temporary files are swept."""
_AGAIN_SECONDS = 5.0
_SILENT_SECONDS = 5.0
"""A rank whose probe says nothing for this long may be told by another connection."""
_ONCE_SECONDS = 3.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Heard:
    """The newest message of a rank, and the connection it came by."""

    sample: ProbeSample
    connection: socket.socket


class ProbeSource:
    """The probes in one engine, one a data-parallel rank, all on one Unix socket that is made here.

    ``clock`` gives seconds since the epoch and never jumps; a sample bears the time its message came.
    """

    def __init__(self, engine: str, path: Path, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._path = path
        self._clock = clock
        self._ranks: dict[str, _Heard] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._errors: Counter[str] = Counter()
        self._last_at: float | None = None
        self._last_error = (
            f"{path}: no probe has connected; is it installed in a vLLM V1, and does the engine run with"
            f" THRASHOLD_PROBE_SOCKET={path}? (docs/probe.md)"
        )

    @property
    def name(self) -> str:
        """The engine's name, and that it is its probe."""
        return probe_source_name(self._engine)

    def observe(self) -> Observation:
        """The newest message of each rank whose probe is connected."""
        samples = tuple(heard.sample for _, heard in sorted(self._ranks.items()))
        status = SourceStatus(
            self.name,
            KIND,
            answering=bool(samples),
            last_at=self._last_at,
            read_seconds=None,
            errors=tuple(sorted(self._errors.items())),
            last_error="" if samples else self._last_error,
        )
        return Observation(status, probes=samples)

    async def run(self) -> None:
        """Listen until cancelled; where the socket can't be made, try again and again."""
        while True:
            try:
                listening = ProbeSocket(self._path)
            except SocketError as error:
                self._failed(Reason.NO_SOCKET, str(error))
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            try:
                await self._accept(listening)
            finally:
                listening.close()
                for task in self._connections:
                    task.cancel()

    async def read_once(self) -> None:
        """Listen until a probe has spoken, for three seconds at most: it tries once a second."""
        task = asyncio.ensure_future(self.run())
        until = time.monotonic() + _ONCE_SECONDS
        while not self._ranks and time.monotonic() < until:
            await asyncio.wait({task}, timeout=0.05)
        heard = dict(self._ranks)
        task.cancel()
        await asyncio.wait({task, *self._connections})
        self._ranks = heard

    async def _accept(self, listening: ProbeSocket) -> None:
        """Let probes in for as long as the path leads here."""
        loop = asyncio.get_running_loop()
        while listening.is_there():
            try:
                connection, _ = await asyncio.wait_for(loop.sock_accept(listening.socket), _LOOK_SECONDS)
            except TimeoutError:
                continue
            except OSError as error:  # out of file descriptors, for one
                self._failed(
                    Reason.NO_SOCKET, f"{self._path}: nobody can be let in ({error.strerror or error})"
                )
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            if not self._lets_in(connection):
                connection.close()
                continue
            connection.setblocking(False)
            task = asyncio.ensure_future(self._hear(connection))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        _log.warning("%s: %s was taken away; it is made again", self.name, self._path)

    def _lets_in(self, connection: socket.socket) -> bool:
        trusted, user = peer_is_trusted(connection)
        if not trusted:
            problem = f"user {user} is not let in; let the engine run as this sidecar's user or as root"
        elif len(self._connections) >= MOST_CONNECTIONS:
            problem = f"{MOST_CONNECTIONS} connections are open, which no engine has; look who connects"
        else:
            return True
        self._failed(Reason.UNAUTHORISED, f"{self._path}: {problem}")
        return False

    async def _hear(self, connection: socket.socket) -> None:
        """One connection to its end."""
        loop = asyncio.get_running_loop()
        rank = None
        try:
            while True:
                data = await loop.sock_recv(connection, MOST_MESSAGE_BYTES)
                if not data and rank is not None:
                    self._failed(Reason.DISCONNECTED, self._gone(rank))
                if not data:
                    return
                sample = read_message(data, self._engine, self._clock())
                if not self._takes(sample, connection):
                    return
                if rank != sample.rank:
                    self._forget(rank, connection)
                    rank = sample.rank
                    _log.info("%s: the probe of rank %s has connected", self.name, rank)
                self._ranks[rank] = _Heard(sample, connection)
                self._last_at = sample.at
        except MessageError as error:
            self._failed(Reason.NOT_A_PROBE, f"{self._path}: {one_line(str(error))}")
        except OSError as error:
            self._failed(Reason.DISCONNECTED, f"{self._gone(rank)} ({error.strerror or error})")
        finally:
            self._forget(rank, connection)
            connection.close()

    def _takes(self, sample: ProbeSample, connection: socket.socket) -> bool:
        """Whether this connection tells the rank; another that still speaks goes first."""
        told = self._ranks.get(sample.rank)
        if told is None or told.connection is connection or sample.at - told.sample.at > _SILENT_SECONDS:
            return True
        self._failed(
            Reason.NOT_A_PROBE,
            f"{self._path}: a second probe says that it is rank {sample.rank}; give each engine a socket of its own",
        )
        return False

    def _forget(self, rank: str | None, connection: socket.socket) -> None:
        with contextlib.suppress(KeyError):
            if rank is not None and self._ranks[rank].connection is connection:
                del self._ranks[rank]

    def _gone(self, rank: str | None) -> str:
        whose = "a probe" if rank is None else f"the probe of rank {rank}"
        remedy = "look whether the engine is restarting, or for a line of the probe in its log"
        return f"{self._path}: {whose} hung up; {remedy}"

    def _failed(self, reason: Reason, line: str) -> None:
        self._errors[reason.value] += 1
        if line != self._last_error:
            _log.warning("%s: %s", self.name, line)
        self._last_error = line
