"""The thread that hears the KV events of one engine: all its ranks' sockets in one loop."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import zmq

from exporter.kv_events.reception import Reception
from exporter.kv_events_sample import KvEventsSample
from exporter.kv_events_settings import KvEventsSettings
from exporter.sources.kv_events_stream import Stream

SAMPLE_SECONDS = 0.25
"""How old a sample may be when the cycle takes it."""
_TELL_LOSS_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Heard:
    """What one turn of the loop leaves for the cycle.

    ``samples`` are those of the ranks that are connected and can tell; ``is_whole`` says whether all ranks are
    connected, ``last_failure`` in one line what keeps the first that isn't.
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
        self._told_loss: dict[str, tuple[int, float]] = {}
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
                for stream in streams:
                    stream.turn(now)
                if now - published >= SAMPLE_SECONDS:
                    published = now
                    self.newest = self._heard(streams, now)
        finally:
            for stream in streams:
                stream.close()

    def _heard(self, streams: Sequence[Stream], now: float) -> Heard:
        samples = []
        failures: Counter[str] = Counter()
        for rank, stream in zip(_ranks(streams), streams, strict=True):
            failures.update(stream.failures)
            sample = stream.reception.tally.sample(now, self._engine, str(rank))
            self._tell_loss(stream, sample)
            # a topic of the user's own may fit nothing: then silence says nothing of the engine
            if stream.is_connected and (stream.was_heard or not self._settings.topic):
                samples.append(sample)
        is_whole = all(stream.is_connected for stream in streams)
        last_failure = next((each.last_failure for each in streams if each.last_failure), "")
        return Heard(tuple(samples), is_whole, tuple(sorted(failures.items())), last_failure)

    def _tell_loss(self, stream: Stream, sample: KvEventsSample) -> None:
        """Log what was lost, at most once a minute."""
        told, at = self._told_loss.get(stream.endpoint, (0, float("-inf")))
        if sample.lost_batches_total > told and sample.at - at >= _TELL_LOSS_SECONDS:
            self._told_loss[stream.endpoint] = (sample.lost_batches_total, sample.at)
            _log.warning(
                "%s: %d batches from %s were lost; counts and rates of blocks are too low by what they held",
                stream.name,
                sample.lost_batches_total - told,
                stream.endpoint,
            )


def _ranks(streams: Sequence[Stream]) -> Sequence[int]:
    """What each publisher says it is, or its place where it says nothing; the places where two would be the same."""
    places = range(len(streams))
    told = [
        place if stream.reception.rank is None else stream.reception.rank
        for place, stream in zip(places, streams, strict=True)
    ]
    return told if len(set(told)) == len(told) else places
