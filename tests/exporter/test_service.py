"""The pages of a running sidecar, over real connections."""

from __future__ import annotations

import errno
import gzip
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.ending import CANCEL_SECONDS, THREAD_SECONDS
from exporter.recorder_api import _LAST_SECONDS
from exporter.service import _GRACE_SECONDS, accepts_gzip, listening_socket
from tests.exporter.running import PAGE, Sidecar, engine, free_port, hanging_engine, running


@pytest.fixture(scope="module")
def sidecar() -> Iterator[Sidecar]:
    with engine(PAGE) as url, running("--engine", url) as started:
        started.wait_until_ready()
        yield started


def get(sidecar: Sidecar, path: str, **headers: str) -> httpx.Response:
    return sidecar.get(path, headers)


def test_metrics_come_as_text_or_openmetrics(sidecar: Sidecar) -> None:
    plain = get(sidecar, "/metrics")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    names = {family.name for family in parse_text(plain.text)}
    assert {"thrashold_source_up", "thrashold_kv_usage_ratio", "thrashold_kv_usage_ratio_peak"} <= names
    openmetrics = get(sidecar, "/metrics", Accept="application/openmetrics-text;version=1.0.0")
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = parse_openmetrics(openmetrics.text)  # type: ignore[no-untyped-call]
    assert "thrashold_source_up" in {family.name for family in families}


def test_metrics_are_zipped_for_those_who_ask(sidecar: Sidecar) -> None:
    with (
        sidecar.client() as client,
        client.stream("GET", "/metrics", headers={"Accept-Encoding": "gzip"}) as answer,
    ):
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert b"thrashold_source_up" in gzip.decompress(raw)
    plain = get(sidecar, "/metrics", **{"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert len(raw) < len(plain.content) / 3
    assert "Accept-Encoding" in plain.headers["vary"]


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        (b"gzip", True),
        (b"gzip, deflate, br", True),
        (b"deflate;q=1, GZIP;q=0.5", True),
        (b"", False),
        (b"identity", False),
        (b"gzip;q=0", False),
        (b"gzip; q=0.000", False),
        (b"br, zstd", False),
    ],
)
def test_what_counts_as_taking_gzip(header: bytes, taken: bool) -> None:  # noqa: FBT001 - a table's column
    assert accepts_gzip(header) is taken


def test_healthy_and_ready(sidecar: Sidecar) -> None:
    assert (get(sidecar, "/-/healthy").status_code, get(sidecar, "/-/healthy").text) == (200, "healthy\n")
    assert (get(sidecar, "/-/ready").status_code, get(sidecar, "/-/ready").text) == (200, "ready\n")


def test_only_reading_is_possible(sidecar: Sidecar) -> None:
    for path in ("/metrics", "/", "/-/healthy", "/-/ready"):
        with sidecar.client() as client:
            assert client.post(path).status_code == 405
            head = client.head(path)
            assert (head.status_code, head.content) == (200, b"")
    assert get(sidecar, "/nothing").status_code == 404
    assert "server" not in get(sidecar, "/metrics").headers


def test_garbage_costs_its_sender_alone(sidecar: Sidecar) -> None:
    port = httpx.URL(sidecar.url).port
    assert port
    for garbage in (
        b"\x16\x03\x01\x00\xff" * 50,
        b"GET /metrics\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: " + b"x" * 200_000,
    ):
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(garbage)
            raw.settimeout(5)
            assert raw.recv(12) in {b"HTTP/1.1 400", b""}
    assert get(sidecar, "/metrics").status_code == 200


def test_it_is_not_ready_and_says_why_while_no_source_is_fresh() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with running("--engine", url) as sidecar:
        deadline = time.monotonic() + 30
        while "refused" not in (answer := get(sidecar, "/-/ready")).text:
            assert time.monotonic() < deadline, answer.text
            time.sleep(0.05)
        assert answer.status_code == 503
        assert url.removeprefix("http://") in answer.text
        assert answer.text.count("\n") == 1
        metrics = get(sidecar, "/metrics")
        assert metrics.status_code == 200
        assert "thrashold_source_up{" in metrics.text
        assert "thrashold_kv_usage_ratio" not in metrics.text


def test_an_engine_that_hangs_holds_up_neither_scrapes_nor_the_end(tmp_path: Path) -> None:
    with hanging_engine() as url:
        config = tmp_path / "thrashold.yaml"
        # Longer than the test may take: whoever waited for the engine would never come to its end.
        config.write_text(f"engines: [{{url: '{url}', deadline_seconds: 600}}]\n")
        with running("--config", str(config)) as sidecar, sidecar.client() as client:
            for _ in range(20):
                assert client.get("/metrics").status_code == 200
            assert "has not answered yet" in client.get("/-/ready").text, "the engine still hangs"
            # Connections that are open and idle, half a request, and an answer nobody takes.
            port = httpx.URL(sidecar.url).port
            assert port
            idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
            idle[0].sendall(b"GET /metrics HT")
            idle[1].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
            sidecar.terminate()
            assert sidecar.process.returncode == 0
            assert "Traceback" not in sidecar.log()
            for each in idle:
                each.close()


def test_all_that_is_waited_for_at_the_end_takes_less_than_a_second() -> None:
    # The server's clients, an export's process, the tasks of the sidecar, those of the loop, a thread that hangs.
    assert _GRACE_SECONDS + _LAST_SECONDS + 2 * CANCEL_SECONDS + THREAD_SECONDS < 1


def test_loopback_is_quiet() -> None:
    with hanging_engine() as url, running("--engine", url) as sidecar:
        assert "OPEN TO THE NETWORK" not in sidecar.log()


@pytest.mark.parametrize(
    ("both", "six", "bound"),
    [
        (True, True, [("::", True)]),
        (True, False, [("::", True), ("0.0.0.0", False)]),  # noqa: S104 - only named here
        (False, False, [("0.0.0.0", False)]),  # noqa: S104
    ],
)
def test_no_host_means_all_addresses(
    monkeypatch: pytest.MonkeyPatch,
    *,
    both: bool,
    six: bool,
    bound: list[tuple[str, bool]],
) -> None:
    """Nothing is really opened: a socket on loopback stands for the one on all addresses."""
    asked: list[tuple[str, bool]] = []
    create = socket.create_server

    def instead(
        address: tuple[str, int], *, family: int = socket.AF_INET, dualstack_ipv6: bool = False
    ) -> socket.socket:
        asked.append((address[0], dualstack_ipv6))
        assert (family == socket.AF_INET6) is dualstack_ipv6
        if family == socket.AF_INET6 and not six:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return create(("127.0.0.1", address[1]))

    monkeypatch.setattr(socket, "create_server", instead)
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: both)
    with listening_socket("", 0):
        assert asked == bound


def test_answers_do_not_wait_for_an_acknowledgement() -> None:
    with listening_socket("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
