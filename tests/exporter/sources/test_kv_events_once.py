"""What one look at KV events says: for ``--check`` and ``--once``."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

from exporter.kv_events_settings import KvEventsSettings
from exporter.sources.kv_events import KvEventsSource
from tests.exporter.sources.kv_listening import free_ports, serve_otherwise
from tests.support.kv_publisher import Publisher


def test_once_connects_and_shows_it() -> None:
    (port,) = free_ports(1)
    source = KvEventsSource("e", KvEventsSettings(f"tcp://127.0.0.1:{port}"), time.time)
    with Publisher(port):
        asyncio.run(source.read_once())
    shown = source.observe()
    assert shown.status.answering
    assert [sample.stores_total for sample in shown.kv_events] == [(("gpu", 0),)]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", None])
def test_once_says_what_is_wrong_with_a_port_that_speaks_otherwise(answer: bytes | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve_otherwise, args=(server, answer), daemon=True).start()
        source = KvEventsSource(
            "e", KvEventsSettings(f"tcp://127.0.0.1:{server.getsockname()[1]}"), time.time
        )
        asyncio.run(source.read_once())
    assert "does not speak ZeroMQ" in source.observe().status.last_error
