"""One publisher's sockets: the subscription, whether it is connected, and the replay of what was missed.

Needs pyzmq, the ``kv-events`` extra. All of it lives in one thread.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from exporter.kv_events.reception import NUMBER_BYTES, Reception, Replay
from exporter.sources.failure import Reason

RECEIVED_BATCHES = 1000
"""Batches that may wait to be read; more wait in the engine's own queue, and what overflows there is a gap."""
MOST_MESSAGE_BYTES = 16 << 20
"""A batch is some 500 bytes on average; one of a million new tokens is 6 MB."""
MOST_A_TURN = 500
"""Messages read before other ranks have their turn."""
REPLAY_SILENCE_SECONDS = 1.0
REPLAY_SECONDS = 10.0
"""A replay is given up after this long without a word, and after this long in all."""
REPLAY_PAUSE_SECONDS = 1.0
REPLAY_PAUSE_AFTER_SILENCE_SECONDS = 30.0
"""An engine hands a replay out in the thread that publishes: it is not asked all the time."""

_RECONNECT_MILLISECONDS = 1000
_HANDSHAKE_MILLISECONDS = 3000
_KEEPALIVE = ((zmq.TCP_KEEPALIVE, 1), (zmq.TCP_KEEPALIVE_IDLE, 5), (zmq.TCP_KEEPALIVE_INTVL, 2))
_KEEPALIVE_COUNT = 3
_HANDSHAKE_FAILURES = (
    zmq.Event.HANDSHAKE_FAILED_NO_DETAIL
    | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
    | zmq.Event.HANDSHAKE_FAILED_AUTH
)
_WATCHED = (
    zmq.Event.HANDSHAKE_SUCCEEDED | zmq.Event.DISCONNECTED | zmq.Event.CONNECT_RETRIED | _HANDSHAKE_FAILURES
)

_log = logging.getLogger(__name__)


class Stream:
    """One publisher, from connecting to counting.

    ``name`` is what the log calls it. ``is_connected`` follows the connection itself, so that silence on an
    open one is an engine that does nothing; ``was_heard`` is whether a batch has come over it. ``failures`` counts by
    reason since the start. Times are seconds on one clock that never jumps.
    """

    def __init__(  # noqa: PLR0913, PLR0917 -- where from, what for, and under which name
        self,
        context: zmq.Context[Any],
        reception: Reception,
        name: str,
        endpoint: str,
        replay_endpoint: str | None,
        topic: str,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.reception = reception
        self.is_connected = False
        self.was_heard = False
        self.failures: Counter[str] = Counter()
        self.last_failure = ""
        self._context = context
        self._replay_endpoint = replay_endpoint
        self._topic = topic.encode()
        self._replay: zmq.Socket[bytes] | None = None
        self._replay_began = self._replay_heard = 0.0
        self._replay_answered = False
        self._no_replay_before = float("-inf")
        self._hung_up = False
        self._open()

    def sockets(self) -> list[zmq.Socket[bytes]]:
        """What to wait for. While a replay is under way the subscription waits, so that order is kept."""
        return [self._replay or self._subscription, self._monitor]

    @property
    def is_replaying(self) -> bool:
        """Whether what was missed is on its way."""
        return self._replay is not None

    def turn(self, now: float) -> int:
        """Take in what is there, without waiting; gives how many messages it was, ``MOST_A_TURN`` at most."""
        self._watch()
        taken = 0
        with contextlib.suppress(zmq.Again):
            while taken < MOST_A_TURN:
                if self._replay:
                    self._hear_replay(self._replay, now)
                else:
                    self._hear(now)
                taken += 1
        if self._replay:
            self._end_a_silent_replay(now)
        return taken

    def close(self) -> None:
        """Close all sockets at once; what is still to be sent is dropped."""
        self._subscription.disable_monitor()
        for each in (self._monitor, self._subscription, self._replay):
            if each:
                each.close(linger=0)

    def _open(self) -> None:
        self._subscription = _socket(self._context, zmq.SUB, self.endpoint)
        self._subscription.set(zmq.RCVHWM, RECEIVED_BATCHES)
        self._subscription.subscribe(self._topic)
        self._monitor = self._subscription.get_monitor_socket(_WATCHED)
        self._subscription.connect(self.endpoint)

    def _watch(self) -> None:
        while self._monitor.poll(0):
            event = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))["event"]
            if event == zmq.Event.HANDSHAKE_SUCCEEDED:
                self.is_connected = True
                self.reception.connected()
                self.last_failure = ""
                _log.info("%s: connected to %s", self.name, self.endpoint)
                self._hung_up = False
            elif event == zmq.Event.CONNECT_RETRIED:
                if not self._hung_up:  # else the end of a connection, which was told already
                    self._failed(Reason.REFUSED, _REFUSED)
                self._hung_up = False
            elif not self._hung_up:
                self._hung_up = True
                if self.is_connected:
                    self._failed(Reason.DISCONNECTED, _DISCONNECTED)
                else:  # ZeroMQ hangs up on a peer that greets in another way
                    self._failed(Reason.NOT_ZMQ, _NOT_ZMQ)

    def _failed(self, reason: Reason, problem: str) -> None:
        # whoever answers next may publish under another topic
        self.is_connected = self.was_heard = False
        self.failures[reason.value] += 1
        line = f"{self.endpoint}: {problem}"
        if line != self.last_failure and not (reason is Reason.REFUSED and self.last_failure):
            self.last_failure = line
            _log.warning("%s: %s", self.name, line)

    def _hear(self, now: float) -> None:
        frames = _message(self._subscription)
        self.was_heard = True
        can_replay = self._replay_endpoint is not None and now >= self._no_replay_before
        self.reception.heard(frames, now, can_replay=can_replay)
        if self.reception.wanted is not None:
            self._replay_began, self._replay_answered = now, False
            self._ask(now)

    def _ask(self, now: float) -> None:
        """Ask for what is wanted, on a new socket: the rest of an answer to an old one is never met again."""
        self._drop_replay()
        start = self.reception.wanted
        if self._replay_endpoint is None or start is None:
            return
        self._replay_heard = now
        self._replay = _socket(self._context, zmq.DEALER, self._replay_endpoint)
        self._replay.connect(self._replay_endpoint)
        self._replay.send_multipart([b"", start.to_bytes(NUMBER_BYTES, "big")], zmq.NOBLOCK)

    def _hear_replay(self, replay: zmq.Socket[bytes], now: float) -> None:
        frames = _message(replay)
        self._replay_heard, self._replay_answered = now, True
        self._go_on(self.reception.replayed(frames[1:] if frames[:1] == [b""] else frames, now), now)

    def _go_on(self, replay: Replay, now: float) -> None:
        if replay is Replay.AGAIN:
            self._ask(now)
        elif replay is Replay.OVER:
            self._drop_replay()
            pause = REPLAY_PAUSE_SECONDS if self._replay_answered else REPLAY_PAUSE_AFTER_SILENCE_SECONDS
            self._no_replay_before = now + pause

    def _end_a_silent_replay(self, now: float) -> None:
        if now - self._replay_began > REPLAY_SECONDS:
            self.reception.given_up(now)
            self._go_on(Replay.OVER, now)
        elif now - self._replay_heard > REPLAY_SILENCE_SECONDS:
            if not self._replay_answered:
                _log.warning(
                    "%s: %s does not answer; what was missed is lost", self.name, self._replay_endpoint
                )
            self._go_on(self.reception.replay_ended(now), now)

    def _drop_replay(self) -> None:
        if self._replay:
            self._replay.close(linger=0)
            self._replay = None


_REFUSED = (
    "nothing listens there, or it can't be reached; does the engine run with --kv-events-config,"
    " and does its endpoint begin with tcp://*?"
)
_DISCONNECTED = "the connection was closed; look whether the engine is restarting"
_NOT_ZMQ = "what answers there does not speak ZeroMQ; check the port: it is not that of the engine's HTTP"


def _socket(context: zmq.Context[Any], kind: int, endpoint: str) -> zmq.Socket[bytes]:
    socket: zmq.Socket[bytes] = context.socket(kind)
    socket.set(zmq.LINGER, 0)
    socket.set(zmq.MAXMSGSIZE, MOST_MESSAGE_BYTES)
    socket.set(zmq.RECONNECT_IVL, _RECONNECT_MILLISECONDS)
    socket.set(zmq.HANDSHAKE_IVL, _HANDSHAKE_MILLISECONDS)
    for option, value in _KEEPALIVE:
        socket.set(option, value)
    socket.set(zmq.TCP_KEEPALIVE_CNT, _KEEPALIVE_COUNT)
    if "[" in endpoint:
        socket.set(zmq.IPV6, 1)
    return socket


def _message(socket: zmq.Socket[bytes]) -> list[bytes]:
    """The frames of one that is there. Raises zmq.Again where none is.

    pyzmq's ``recv_multipart`` asks the socket after each frame whether that was the last, which takes twice as long.
    """
    frame = socket.recv(zmq.NOBLOCK, copy=False)
    frames = [frame.bytes]
    while frame.more:
        frame = socket.recv(zmq.NOBLOCK, copy=False)
        frames.append(frame.bytes)
    return frames
