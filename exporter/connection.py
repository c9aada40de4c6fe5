"""How long a connection may keep the server waiting for a request, and who goes first where there are too many.

A server has room for so many connections. Without a bound one caller, on purpose or by a fault, could take them all by
asking for nothing: uvicorn lets a connection wait for ever that has sent nothing yet, or half a request.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 30.0
"""For a whole request, from the connection or from its first byte on one that is kept: what is sent is small, but for a
notification of some MB over a slow line."""
CROWD = 800
"""Connections from which on a new one takes the place of the one that has waited for a request for longest."""


class PatientProtocol(H11Protocol):
    """uvicorn's own, with a bound: a request that isn't whole in time ends its connection, answered by nobody.

    What is answered already is never cut off: a stream of events lasts as long as its reader likes.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*arguments, **named)
        self._waiting_since: float | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for its first request from now on."""
        if len(self.connections) >= CROWD:
            self._make_room()
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request in."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE or self.conn.their_state is h11.SEND_BODY:
            self._wait()
        else:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        """Wait for the next request, which may be long in coming: uvicorn bounds that by itself."""
        super().on_response_complete()
        if self.conn.their_state is not h11.IDLE:
            return
        self._wait_no_more()
        self._waiting_since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self._give_up)
            self._waiting_since = self.loop.time()

    def _wait_no_more(self) -> None:
        self._waiting_since = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._wait_no_more()
        self.transport.abort()

    def _make_room(self) -> None:
        waiting = [
            (each._waiting_since, place, each)  # noqa: SLF001 - another of its own kind
            for place, each in enumerate(self.connections)
            if isinstance(each, PatientProtocol) and each._waiting_since is not None  # noqa: SLF001
        ]
        if waiting:
            min(waiting)[2]._give_up()  # noqa: SLF001
