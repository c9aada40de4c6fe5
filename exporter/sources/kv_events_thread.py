"""The thread that hears the KV events of one engine: all its ranks' sockets in one loop."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import zmq

from exporter.kv_events.reception import Reception
from exporter.kv_events_sample import KvEventsSample
from exporter.kv_events_settings import KvEventsSettings
from exporter.sources.kv_events_stream import MOST_A_TURN, Stream

SAMPLE_SECONDS = 0.25
"""How old a sample may be when the cycle takes it."""
GATHER_SECONDS = 0.02
"""How long events gather before they are taken: waking up for each takes more than reading it.

At 50,000 events a second some 330 batches come meanwhile, a third of those that may wait.
"""
_TELL_SECONDS = 60.0

_LOST = "batches from {} were lost; counts and rates of blocks are too low by what they held"
_BROKEN = "messages from {} can't be read and count as no blocks; are they KV events of an engine?"
_UNKNOWN = (
    "events from {} are of a kind that isn't known and count as no blocks; please report the engine's version"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Heard:
    """What one turn of the loop leaves for the cycle.

    ``samples`` are those of the ranks that are connected and can tell; ``is_whole`` says whether all ranks are
    connected, ``last_failure`` in one line what keeps the first that isn't, or that tells nothing yet.
    """

    samples: tuple[KvEventsSample, ...] = ()
    is_whole: bool = False
    failures: tuple[tuple[str, int], ...] = ()
    last_failure: str = ""


class Listener:
    """A thread with its sockets, and what comes of what they hear: a reception for each rank.

    ``newest`` may be read from any thread; it is replaced as a whole. ``ended`` is called, in the thread,
    once it is over: with what broke it, or None after ``stop``.
    """

    def __init__(
        self,
        engine: str,
        settings: KvEventsSettings,
        receptions: Sequence[Reception],
        clock: Callable[[], float],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self.newest = Heard()
        self._engine = engine
        self._settings = settings
        self._receptions = receptions
        self._clock = clock
        self._ended = ended
        self._bell, self._bell_rope = socket.socketpair()
        self._stopping = False
        self._told: dict[tuple[str, str], tuple[int, float]] = {}
        self._thread = threading.Thread(target=self._run, name=f"kv events {engine}", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self, wait_seconds: float) -> None:
        """End the thread; wait for that no longer than told."""
        self._stopping = True
        with contextlib.suppress(OSError):  # it has ended by itself
            self._bell_rope.send(b"!")
        self._thread.join(wait_seconds)

    def _run(self) -> None:
        broken: BaseException | None = None
        try:
            context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
            try:
                self._listen(context)
            finally:
                context.destroy(linger=0)
        except Exception as error:  # noqa: BLE001 -- whoever started the thread logs it
            broken = error
        self._bell.close()
        self._bell_rope.close()
        self._ended(broken)

    def _listen(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        streams: list[Stream] = []
        try:
            for place, reception in enumerate(self._receptions):
                reception.given_up(self._clock())  # by a thread before this one, which broke
                endpoint, replay_endpoint = self._settings.of_rank(place)
                name = f"KV events of engine {self._engine}"
                streams.append(
                    Stream(context, reception, name, endpoint, replay_endpoint, self._settings.topic)
                )
            published = float("-inf")
            while not self._stopping:
                poller = zmq.Poller()
                for each in (self._bell, *(each for stream in streams for each in stream.sockets())):
                    poller.register(each, zmq.POLLIN)
                poller.poll(int(SAMPLE_SECONDS * 1000))
                now = self._clock()
                taken = max(stream.turn(now) for stream in streams)
                if now - published >= SAMPLE_SECONDS:
                    published = now
                    self.newest = self._heard(streams, now)
                if 0 < taken < MOST_A_TURN and not any(stream.is_replaying for stream in streams):
                    time.sleep(GATHER_SECONDS)
        finally:
            for stream in streams:
                stream.close()

    def _heard(self, streams: Sequence[Stream], now: float) -> Heard:
        samples = []
        failures: Counter[str] = Counter()
        for rank, stream in zip(_ranks(streams), streams, strict=True):
            failures.update(stream.failures)
            sample = stream.reception.tally.sample(now, self._engine, str(rank))
            for count, what in (
                (sample.lost_batches_total, _LOST),
                (sample.broken_batches_total, _BROKEN),
                (sample.unknown_events_total, _UNKNOWN),
            ):
                self._tell(stream, count, what, now)
            # a topic of the user's own may fit nothing: then silence says nothing of the engine
            if stream.is_connected and (stream.was_heard or not self._settings.topic):
                samples.append(sample)
        is_whole = all(stream.is_connected for stream in streams)
        failed = (each.last_failure for each in streams if each.last_failure)
        silent = (said for each in streams if (said := self._silence(each)))
        last_failure = next(failed, next(silent, ""))
        return Heard(tuple(samples), is_whole, tuple(sorted(failures.items())), last_failure)

    def _tell(self, stream: Stream, count: int, what: str, now: float) -> None:
        """Log what didn't come or can't be read, at most once a minute."""
        told, at = self._told.get((stream.endpoint, what), (0, float("-inf")))
        if count > told and now - at >= _TELL_SECONDS:
            self._told[stream.endpoint, what] = (count, now)
            _log.warning("%s: %d %s", stream.name, count - told, what.format(stream.endpoint))

    def _silence(self, stream: Stream) -> str:
        """Why nothing is told of a publisher that is connected; empty while something is."""
        if not stream.is_connected or stream.was_heard or not self._settings.topic:
            return ""
        return (
            f"{stream.endpoint}: connected, and nothing has come yet of a topic that begins with"
            f" {self._settings.topic}; the engine is idle, or its topic is another one"
        )


def _ranks(streams: Sequence[Stream]) -> Sequence[int]:
    """What each publisher says it is, or its place where it says nothing; the places where two would be the same."""
    places = range(len(streams))
    told = [
        place if stream.reception.rank is None else stream.reception.rank
        for place, stream in zip(places, streams, strict=True)
    ]
    return told if len(set(told)) == len(told) else places
