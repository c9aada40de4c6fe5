"""The subscriber against a publisher of its own on loopback sockets, which speaks as vLLM does."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading

import msgspec
import pytest

from exporter.kv_events_settings import KvEventsSettings
from tests.exporter.running import ROOT
from tests.exporter.sources.kv_listening import (
    PATIENCE_SECONDS,
    Watched,
    free_ports,
    serve_otherwise,
    watching,
)
from tests.support.kv_events import removed, stored
from tests.support.kv_publisher import Publisher

pytestmark = pytest.mark.long


def test_events_are_counted_as_they_come() -> None:
    (port,) = free_ports(1)
    with Publisher(port) as publisher, watching(port) as watched:
        publisher.subscribed()
        assert watched.connected().status.errors == ()
        publisher.publish(stored(1, 2), removed(1), stored(3, medium="CPU", encoding="array"))
        publisher.publish(stored(1), {"type": "BlockMoved"})
        sample = watched.counted(2)
    assert (sample.engine, sample.rank) == ("e", "0")
    assert dict(sample.stores_total) == {"gpu": 3, "cpu": 1}
    assert dict(sample.removals_total) == {"gpu": 1}
    assert (sample.restores_total, sample.unknown_events_total, sample.lost_batches_total) == (1, 1, 0)


def test_an_idle_engine_has_counts_of_0_and_a_missing_one_none() -> None:
    (port,) = free_ports(1)
    with watching(port) as watched:
        shown = watched.until(lambda shown: bool(shown.status.errors))
        assert not shown.status.answering
        assert shown.kv_events == ()
        assert dict(shown.status.errors).keys() == {"refused"}
        assert "--kv-events-config" in shown.status.last_error
        with Publisher(port):
            (sample,) = watched.connected().kv_events
            assert (sample.batches_total, sample.stores_on("gpu")) == (0, 0)
            newer = watched.until(lambda shown: shown.kv_events[0].at > sample.at).kv_events[0]
            assert newer.batches_total == 0
        gone = watched.until(lambda shown: not shown.status.answering)
        assert gone.kv_events == ()
        assert dict(gone.status.errors)["disconnected"] == 1
        assert gone.status.last_at is not None


@pytest.mark.parametrize("replays_topic", [False, True], ids=["to 0.25", "from 0.26"])
def test_what_was_lost_on_the_way_is_asked_for_and_counted_once(*, replays_topic: bool) -> None:
    port, replay_port = free_ports(2)
    with (
        Publisher(port, replay_port, replays_topic=replays_topic) as publisher,
        watching(port, replay_port) as watched,
    ):
        publisher.subscribed()
        publisher.publish(stored(1))
        for block in (2, 3, 4):
            publisher.publish(stored(block), unheard=True)
        for block in (5, 6, 7, 8):  # the replay tells of those too that the subscription brings
            publisher.publish(stored(block))
        sample = watched.counted(8)
    assert (sample.batches_total, sample.stores_on("gpu"), sample.lost_batches_total) == (8, 8, 0)


def test_without_a_replay_what_was_lost_is_counted_as_lost(caplog: pytest.LogCaptureFixture) -> None:
    (port,) = free_ports(1)
    with Publisher(port) as publisher, watching(port) as watched, caplog.at_level(logging.WARNING):
        publisher.subscribed()
        publisher.publish(stored(1))
        publisher.publish(stored(2), unheard=True)
        publisher.publish(stored(3))
        sample = watched.counted(2)
    assert (sample.batches_total, sample.lost_batches_total) == (2, 1)
    assert "1 batches from" in caplog.text


def test_what_the_publisher_no_longer_has_is_lost_and_the_rest_counted() -> None:
    port, replay_port = free_ports(2)
    with Publisher(port, replay_port, kept=3) as publisher, watching(port, replay_port) as watched:
        publisher.subscribed()
        publisher.publish(stored(0))
        for block in range(1, 10):
            publisher.publish(stored(block), unheard=True)
        publisher.publish(stored(10))
        sample = watched.counted(4)
    assert (sample.batches_total, sample.lost_batches_total) == (1 + 3, 7)


def test_a_replay_of_more_than_a_socket_takes_at_once_is_brought_in_parts() -> None:
    """A publisher sends it all in one go and drops what is too much: no error, no end, just holes."""
    port, replay_port = free_ports(2)
    with Publisher(port, replay_port) as publisher, watching(port, replay_port) as watched:
        publisher.subscribed()
        publisher.publish(stored(0))
        watched.counted(1)
        publisher.flood(9000, events=20, unheard=True)
        publisher.publish(stored(1))
        sample = watched.counted(9002)
    assert (sample.batches_total, sample.lost_batches_total) == (9002, 0)
    assert sample.stores_on("gpu") == 2 + 9000 * 20


def test_a_replay_endpoint_that_does_not_answer_holds_nothing_up_for_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    port, nobody = free_ports(2)
    with Publisher(port) as publisher, watching(port, nobody) as watched, caplog.at_level(logging.WARNING):
        publisher.subscribed()
        publisher.publish(stored(1))
        publisher.publish(stored(2), unheard=True)
        publisher.publish(stored(3))
        publisher.publish(stored(4))
        sample = watched.counted(3)
        assert (sample.batches_total, sample.lost_batches_total) == (3, 1)
        publisher.publish(stored(5), unheard=True)
        publisher.publish(stored(6))  # and is not asked again for every gap
        sample = watched.counted(4)
    assert (sample.batches_total, sample.lost_batches_total) == (4, 2)
    assert caplog.text.count("does not answer") == 1


def test_a_publisher_that_starts_anew_counts_on() -> None:
    port, replay_port = free_ports(2)
    with watching(port, replay_port) as watched:
        with Publisher(port, replay_port) as publisher:
            publisher.subscribed()
            for block in range(5):
                publisher.publish(stored(block), removed(block))
            watched.counted(5)
        watched.until(lambda shown: not shown.status.answering)
        with Publisher(port, replay_port) as publisher:
            publisher.subscribed()
            publisher.publish(stored(0, 1), unheard=True)  # before the connection was made again
            publisher.publish(stored(2))
            sample = watched.counted(7)
    assert (sample.batches_total, sample.lost_batches_total) == (7, 0)
    assert (sample.stores_on("gpu"), sample.restores_total) == (5 + 3, 0)


def test_garbage_on_the_wire_costs_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    (port,) = free_ports(1)
    with Publisher(port) as publisher, watching(port) as watched:
        publisher.subscribed()
        publisher.publish(stored(1))
        publisher.send(b"kv-events", b"\0" * 7, b"x")
        publisher.send(b"alone")
        publisher.publish(stored(2), unheard=True)
        publisher.send(b"kv-events", (1).to_bytes(8, "big"), b"\xc1")  # comes in its place
        publisher.send(*[b"x"] * 50)
        publisher.publish(stored(3))
        publisher.send(b"kv-events", (3).to_bytes(8, "big"), msgspec.msgpack.encode([1.0, [["Unheard"]], 0]))
        sample = watched.counted(3)
    assert sample.broken_batches_total == 4
    assert sample.unknown_events_total == 1
    assert f"messages from tcp://127.0.0.1:{port} can't be read and count as no blocks" in caplog.text
    assert f"1 events from tcp://127.0.0.1:{port} are of a kind that isn't known" in caplog.text
    assert (sample.batches_total, sample.lost_batches_total) == (3, 0)


def test_each_rank_has_a_port_and_counts_of_its_own() -> None:
    first, second = free_ports(2)
    with watching(first, ranks=2) as watched, Publisher(first) as zero:
        zero.subscribed()
        zero.publish(stored(1))
        shown = watched.until(lambda shown: bool(shown.kv_events) and shown.kv_events[0].batches_total == 1)
        assert [sample.rank for sample in shown.kv_events] == ["0"]  # the other one is not there
        assert not shown.status.answering
        assert f":{second}" in shown.status.last_error
        with Publisher(second) as one:
            one.subscribed()
            one.publish(stored(1, 2), rank=7)
            shown = watched.until(
                lambda shown: len(shown.kv_events) == 2 and shown.kv_events[1].batches_total
            )
    assert [(sample.rank, sample.stores_on("gpu")) for sample in shown.kv_events] == [("0", 1), ("7", 2)]


def test_ranks_that_all_call_themselves_the_same_go_by_their_ports() -> None:
    first, second = free_ports(2)
    with watching(first, ranks=2) as watched, Publisher(first) as zero, Publisher(second) as one:
        for publisher, blocks in ((zero, (1,)), (one, (1, 2))):
            publisher.subscribed()
            publisher.publish(stored(*blocks), rank=0)
        shown = watched.until(lambda shown: sum(each.batches_total for each in shown.kv_events) == 2)
    assert [(sample.rank, sample.stores_on("gpu")) for sample in shown.kv_events] == [("0", 1), ("1", 2)]


def test_a_topic_that_fits_nothing_is_not_taken_for_an_idle_engine() -> None:
    (port,) = free_ports(1)
    with Publisher(port) as publisher:
        with watching(port, topic="kv@other") as watched:
            publisher.subscribed()
            publisher.publish(stored(1))
            shown = watched.connected()
            assert shown.kv_events == ()
            assert shown.status.last_error == (
                f"tcp://127.0.0.1:{port}: connected, and nothing has come yet of a topic that begins with kv@other;"
                " the engine is idle, or its topic is another one"
            )
        with watching(port, topic="kv-") as watched:
            publisher.subscribed()
            publisher.publish(stored(1))
            assert watched.counted(1).batches_total == 1
            assert watched.source.observe().status.last_error == ""


def test_a_publisher_that_comes_back_may_have_another_topic() -> None:
    (port,) = free_ports(1)
    with watching(port, topic="kv-") as watched:
        with Publisher(port) as publisher:
            publisher.subscribed()
            publisher.publish(stored(1))
            watched.counted(1)
        watched.until(lambda shown: not shown.status.answering)
        with Publisher(port) as publisher:
            publisher.subscribed()
            assert watched.connected().kv_events == ()
            publisher.publish(stored(2))
            assert watched.counted(2).batches_total == 2


_READER = """
import asyncio, json, sys, time
from exporter.kv_events_settings import KvEventsSettings
from exporter.sources.kv_events import KvEventsSource

async def main():
    source = KvEventsSource("e", KvEventsSettings(sys.argv[1]), time.time)
    task = asyncio.ensure_future(source.run())
    while True:
        await asyncio.sleep(0.2)
        for each in source.observe().kv_events:
            print(json.dumps([each.batches_total, each.lost_batches_total]), flush=True)

asyncio.run(main())
"""


def test_a_reader_that_stood_still_goes_on_and_says_what_it_missed() -> None:
    """Its queue fills up, then those of the network, then the publisher's: numbers tell what fell out of it."""
    (port,) = free_ports(1)
    batches = 8000  # of 6 kB each: more than all queues together hold
    command = [sys.executable, "-c", _READER, f"tcp://127.0.0.1:{port}"]
    with (
        Publisher(port, most_waiting=1000) as publisher,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as reader,
    ):
        assert reader.stdout
        try:
            publisher.subscribed()
            publisher.publish(stored(1))
            while json.loads(reader.stdout.readline())[0] < 1:
                pass
            os.kill(reader.pid, signal.SIGSTOP)
            publisher.flood(batches, events=50)
            os.kill(reader.pid, signal.SIGCONT)
            published, heard = batches + 1, [0, 0]
            while sum(heard) < batches:  # the newest are lost too: only a later one tells that
                publisher.publish(stored(1))
                published += 1
                heard = json.loads(reader.stdout.readline())
        finally:
            reader.kill()
    assert heard[0] > 1000
    assert heard[1] > 1000
    assert sum(heard) <= published


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", None])
def test_a_port_that_speaks_otherwise_or_not_at_all_is_told_apart(answer: bytes | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve_otherwise, args=(server, answer), daemon=True).start()
        with watching(server.getsockname()[1]) as watched:
            shown = watched.until(lambda shown: bool(shown.status.errors))
            assert dict(shown.status.errors).keys() == {"not_zmq"}
            assert "does not speak ZeroMQ" in shown.status.last_error
            assert not shown.status.answering
            assert shown.kv_events == ()


def test_ends_also_while_a_replay_is_waited_for() -> None:
    port, nobody = free_ports(2)
    with Publisher(port) as publisher:
        watched = Watched(KvEventsSettings(f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{nobody}"))
        publisher.subscribed()
        publisher.publish(stored(1))
        publisher.publish(stored(2), unheard=True)
        publisher.publish(stored(3))  # a replay is asked of nobody
        watched.connected()
        watched.stop()
    for thread in threading.enumerate():
        if thread.name == "kv events e":
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()
