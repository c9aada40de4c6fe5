"""The replayed engine: the right answer at the right time, over HTTP as an engine speaks it."""

from __future__ import annotations

import http.client
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from drill.recording import Recording, RecordingError, Scrape, load, number, unpacked
from drill.replay import Replayer

SHORT = Recording(
    (Scrape(0.0, "idle", b"a 0\n"), Scrape(1.0, "load", b"a 1\n"), Scrape(2.1, "load", b"a 2\n"))
)


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def connected(replayer: Replayer) -> Iterator[http.client.HTTPConnection]:
    with replayer:
        connection = http.client.HTTPConnection(urlsplit(replayer.url).netloc, timeout=5)
        try:
            yield connection
        finally:
            connection.close()


def get(
    connection: http.client.HTTPConnection, path: str = "/metrics", method: str = "GET"
) -> tuple[int, bytes]:
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_each_moment_is_answered_as_the_engine_did() -> None:
    clock = Clock()
    replayer = Replayer(SHORT, clock=clock)
    with connected(replayer) as connection:
        replayer.play()
        served = []
        for now in (0.0, 0.99, 1.0, 2.0, 2.1, 2.2):
            clock.now = 1000.0 + now
            served.append(get(connection))
    assert served == [(200, body) for body in (b"a 0\n", b"a 0\n", b"a 1\n", b"a 1\n", b"a 2\n", b"a 2\n")]
    assert replayer.reads == 6


def test_it_stands_before_play_and_at_the_end() -> None:
    clock = Clock()
    replayer = Replayer(SHORT, begin=1.0, clock=clock)
    clock.now += 60
    assert replayer.position == 1.0
    replayer.play()
    clock.now += 0.5
    assert replayer.position == 1.5
    clock.now += 3600
    assert replayer.position == 2.1
    assert replayer.answer() == b"a 2\n"
    with replayer:
        pass


def test_speed_makes_the_recording_pass_faster() -> None:
    clock = Clock()
    with Replayer(SHORT, speed=4.0, clock=clock) as replayer:
        replayer.play()
        clock.now += 0.25
        assert replayer.position == 1.0


def test_one_connection_serves_many_reads() -> None:
    with connected(Replayer(SHORT)) as connection:
        get(connection)
        first = connection.sock
        get(connection, "/nothing")
        get(connection)
        assert connection.sock is first is not None


def test_head_has_the_headers_alone_and_other_paths_are_not_found() -> None:
    with connected(Replayer(SHORT)) as connection:
        connection.request("HEAD", "/metrics")
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("content-length"), answer.read()) == (200, "4", b"")
        assert answer.getheader("content-type") == "text/plain; version=0.0.4; charset=utf-8"
        assert get(connection, "/metrics?name=a") == (200, b"a 0\n")
        assert get(connection, "/") == (404, b"the metrics are at /metrics\n")
        assert get(connection, "/", "HEAD") == (404, b"")


def test_a_read_can_be_waited_for() -> None:
    with connected(Replayer(SHORT)) as connection:
        replayer = Replayer(SHORT)
        assert not replayer.wait_for_read(timeout=0.01)
        with replayer:
            later = threading.Timer(0.05, replayer.answer)
            later.start()
            assert replayer.wait_for_read(timeout=5)
            later.join()
        get(connection)


def test_the_demo_recording_is_whole() -> None:
    recording = load()
    assert len(recording.scrapes) == 111
    assert [scrape.phase for scrape in recording.between(28.5, 29.5)] == ["load", "overload"]
    assert recording.scrape_at(-1) is recording.scrapes[0]
    assert 110 <= recording.seconds < 111
    assert len(recording.departures) == 79
    body = recording.scrape_at(96.5).body
    assert number(body, "vllm:num_preemptions_total") == 128
    assert number(body, "vllm:request_success_total", 'finished_reason="length"') == number(
        body, "vllm:request_success_total"
    )
    assert number(body, "vllm:request_success_total", 'finished_reason="abort"') is None


def test_what_is_no_recording_is_refused_by_name() -> None:
    with pytest.raises(RecordingError, match=r"nothing\.tar\.xz: cannot be read: No such file"):
        load("nothing")
    with pytest.raises(Exception, match="not an lzma file"):
        unpacked(io.BytesIO(b"no archive"))
