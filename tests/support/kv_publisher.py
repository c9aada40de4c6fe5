"""A process that publishes KV events on loopback ports as vLLM does, and does as it is told, line by line.

It binds XPUB, which speaks as PUB and also tells who subscribes, and a ROUTER for replays: a request is an
empty frame and a number of 8 bytes, big-endian; the answer is every batch from there on that it still has, then the
number -1 with nothing. ``python -m tests.support.kv_publisher PORT REPLAY_PORT KEPT REPLAYS_TOPIC MOST_WAITING``
reads a JSON object a line and answers each with a line.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import zmq

from tests.support.kv_events import message, payload, recorded, stored

ROOT = Path(__file__).resolve().parents[2]
TOPIC = b"kv-events"
END = (-1).to_bytes(8, "big", signed=True)


class Publisher:
    """The process, from outside. Events are given as ``tests.support.kv_events`` makes them."""

    def __init__(
        self,
        port: int,
        replay_port: int = 0,
        *,
        kept: int = 10_000,
        replays_topic: bool = True,
        most_waiting: int = 100_000,
    ) -> None:
        options = [port, replay_port, kept, int(replays_topic), most_waiting]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.kv_publisher", *map(str, options)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def subscribed(self, times: int = 1) -> None:
        """Wait until so many have subscribed since the last time this was asked."""
        self._do(do="subscribed", times=times)

    def publish(self, *events: Any, unheard: bool = False, rank: int | None = 0) -> None:  # noqa: ANN401
        """Publish one batch; ``unheard``: number and keep it, as if it had been lost on the way."""
        self._do(do="publish", events=events, unheard=unheard, rank=rank)

    def send(self, *frames: bytes) -> None:
        """Send frames as they are."""
        self._do(do="send", frames=[frame.hex() for frame in frames])

    def flood(self, batches: int, events: int, *, unheard: bool = False) -> None:
        """Publish batches of so many events, one block each, as fast as it can."""
        self._do(do="flood", batches=batches, events=events, unheard=unheard)

    def play(self, seconds: float, events_per_second: float) -> int:
        """Publish the recording of a real engine over and over at such a rate; gives how many batches it was."""
        return int(self._do(do="play", seconds=seconds, rate=events_per_second))

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def _do(self, **told: Any) -> str:  # noqa: ANN401 -- JSON
        if not self._process.stdin:
            raise RuntimeError("no way to tell it anything")
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError("the publisher has ended")
        return line.strip()


class _Sockets:
    def __init__(
        self, port: int, replay_port: int, kept: int, *, replays_topic: bool, most_waiting: int
    ) -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._pub = context.socket(zmq.XPUB)
        self._pub.set(zmq.SNDHWM, most_waiting)
        self._pub.set(zmq.XPUB_VERBOSE, 1)
        self._pub.bind(f"tcp://127.0.0.1:{port}")
        self._router = context.socket(zmq.ROUTER) if replay_port else None
        if self._router:
            self._router.bind(f"tcp://127.0.0.1:{replay_port}")
        self._replays_topic = replays_topic
        self._number = 0
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=kept)

    def run(self) -> None:
        poller = zmq.Poller()
        poller.register(sys.stdin, zmq.POLLIN)
        if self._router:
            poller.register(self._router, zmq.POLLIN)
        _say("ready")
        while True:
            ready = dict(poller.poll())
            if self._router and self._router in ready:
                self._replay(self._router)
            if sys.stdin.fileno() in ready:
                line = sys.stdin.readline()
                if not line:
                    return
                _say(self._do(json.loads(line)))

    def _do(self, told: dict[str, Any]) -> str:
        if told["do"] == "subscribed":
            for _ in range(told["times"]):
                while not self._pub.recv().startswith(b"\x01"):  # who goes is told as well
                    pass
        elif told["do"] == "publish":
            self._publish(payload(time.time(), told["events"], told["rank"]), unheard=told["unheard"])
        elif told["do"] == "send":
            self._pub.send_multipart([bytes.fromhex(frame) for frame in told["frames"]])
        elif told["do"] == "flood":
            for start in range(0, told["batches"] * told["events"], told["events"]):
                blocks = range(start, start + told["events"])
                self._publish(
                    payload(time.time(), [stored(each) for each in blocks]), unheard=told["unheard"]
                )
        elif told["do"] == "play":
            return self._play(told["seconds"], told["rate"])
        return "done"

    def _publish(self, content: bytes, *, unheard: bool = False) -> None:
        if not unheard:
            self._pub.send_multipart(message(self._number, content, TOPIC))
        self._kept.append((self._number, content))
        self._number += 1

    def _play(self, seconds: float, rate: float) -> str:
        """On schedule, in bursts of a hundredth of a second: a process that sleeps after each is too slow.

        Whoever is late sends on without a pause.
        """
        contents = [(content, len(msgspec.msgpack.decode(content)[1])) for content in recorded()]
        began = time.monotonic()
        batches = events = 0
        for content, more in itertools.cycle(contents):
            due = began + events / rate
            now = time.monotonic()
            if now - began >= seconds:
                break
            if due - now > 0.01:
                time.sleep(due - now)
            self._publish(content)
            batches += 1
            events += more
        return str(batches)

    def _replay(self, router: zmq.Socket[bytes]) -> None:
        client, empty, start = router.recv_multipart()
        for number, content in list(self._kept):
            if number >= int.from_bytes(start, "big"):
                frames = message(number, content, TOPIC)
                router.send_multipart([client, empty, *(frames if self._replays_topic else frames[1:])])
        router.send_multipart([client, empty, *([TOPIC] if self._replays_topic else []), END, b""])


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Publish until the standard input ends."""
    port, replay_port, kept, replays_topic, most_waiting = map(int, sys.argv[1:])
    _Sockets(port, replay_port, kept, replays_topic=bool(replays_topic), most_waiting=most_waiting).run()


if __name__ == "__main__":
    main()
