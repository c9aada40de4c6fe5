"""Each kind of wrong answer gives one reason and one line, and costs neither memory nor time without bound."""

from __future__ import annotations

import gzip
import re
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.observation import Observation
from exporter.sources.failure import Reason
from tests.exporter.sources.reading import PAGE, failed, observed, read, run, source
from tests.support.http_servers import (
    TEXT,
    Behaviour,
    Exchange,
    Server,
    bomb,
    chunked,
    flood,
    half_closed,
    hang,
    head,
    packed,
    page,
    raw,
    redirect,
    serving,
    slam,
    slow_loris,
)

MEGABYTE = 1 << 20


@contextmanager
def memory_stays_within(megabytes: int) -> Iterator[None]:
    """The peak of this process, so an earlier test that took more would hide a leak, but none does."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < megabytes * 1024


LOGIN = b"<!DOCTYPE html><html><head><title>Sign in\n to ACME</title></head><body><form>Password</form></body></html>"
HTML = b"<html><head><title>Welcome to nginx!</title></head><body>It works.</body></html>"


@pytest.mark.parametrize(
    ("behaviour", "reason", "says"),
    [
        (page(LOGIN, content_type="text/html"), Reason.NOT_AN_ENGINE, 'login page called "Sign in to ACME"'),
        (page(HTML, content_type="text/html"), Reason.NOT_AN_ENGINE, 'HTML page called "Welcome to nginx!"'),
        (page(b'{"status": "ok"}', content_type="application/json"), Reason.NOT_AN_ENGINE, "is JSON"),
        (page(b""), Reason.NOT_AN_ENGINE, "empty page"),
        (page(b"\n \n"), Reason.NOT_AN_ENGINE, "empty page"),
        (page(b"OK\n"), Reason.NOT_AN_ENGINE, "no metrics page (OK)"),
        (page(b"# HELP vllm:a b\n# TYPE vllm:a gauge\n"), Reason.NOT_AN_ENGINE, "holds no values"),
        (
            page(b"python_info 1\nprocess_cpu_seconds_total 1.5\n"),
            Reason.NOT_AN_ENGINE,
            "the engine has exposed nothing yet",
        ),
        (
            page(b"process_cpu_seconds_total 1\nthrashold_source_up 1\n"),
            Reason.NOT_AN_ENGINE,
            "page of a thrashold sidecar",
        ),
        (page(b"envoy_cluster_upstream_rq_total 1\n"), Reason.NOT_AN_ENGINE, "page of Envoy"),
        (page(b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 9\n'), Reason.NOT_AN_ENGINE, "page of the DCGM exporter"),
        (
            page(b"node_load1 0.1\nnode_load5 0.2\n"),
            Reason.NOT_AN_ENGINE,
            "something else (node_load1, node_load5); check host and port; this release reads vLLM",
        ),
        (
            page(b"\x00\x01\x02", content_type="image/png"),
            Reason.NOT_TEXT,
            "no text (it is called image/png)",
        ),
        (page("up 1\n".encode("utf-16")), Reason.NOT_TEXT, "UTF-16"),
        (page(b"garbage", content_encoding="gzip"), Reason.NOT_TEXT, "can't be unpacked"),
        (page(gzip.compress(PAGE)[:-100], content_encoding="gzip"), Reason.NOT_TEXT, "ends too early"),
        (page(PAGE, content_encoding="br"), Reason.NOT_TEXT, "packs its answer as br"),
        (page(HTML, "500 Internal Server Error"), Reason.HTTP_STATUS, "500 Internal Server Error"),
        (
            page(b"", "404 Not Found"),
            Reason.HTTP_STATUS,
            (
                "404 Not Found; check the path of the URL: engines have it at /metrics, trtllm-serve at"
                " /prometheus/metrics; SGLang needs --enable-metrics, llama.cpp --metrics"
            ),
        ),
        (
            page(b"", "501 Not Implemented"),
            Reason.HTTP_STATUS,
            "SGLang needs --enable-metrics, llama.cpp --metrics",
        ),
        (page(b"", "429 Too Many Requests"), Reason.HTTP_STATUS, "or raise interval_seconds"),
        (
            page(b"", "400 Bad Request"),
            Reason.HTTP_STATUS,
            "400 Bad Request; check the path of the URL: engines",
        ),
        (page(b"", "799 Odd"), Reason.HTTP_STATUS, "answered 799"),
        (page(b"", "204 No Content"), Reason.HTTP_STATUS, "204 No Content"),
        (page(b"", "401 Unauthorized"), Reason.UNAUTHORISED, "401 Unauthorized; set bearer_token_file"),
        (page(b"", "403 Forbidden"), Reason.UNAUTHORISED, "403 Forbidden"),
        (
            redirect("https://user:secret@sso.test/login?state=secret"),
            Reason.REDIRECT,
            "points to https://sso.test/login?...;",
        ),
        (redirect("//[bad"), Reason.REDIRECT, "points to an address that is no URL"),
        (raw(b"220 mail.test ESMTP\r\n\r\n"), Reason.NOT_TEXT, "does not speak HTTP"),
        (raw(b"\x15\x03\x01\x00\x02\x02\x50"), Reason.NOT_TEXT, "http:// or https://"),
        (
            raw(head() + b"vllm:num_requests_running 1\nvllm:num_req"),
            Reason.DISCONNECTED,
            "ends within a line",
        ),
        (raw(head(content_length="900") + b"vllm:"), Reason.DISCONNECTED, "before the answer was complete"),
        (raw(head(transfer_encoding="chunked") + b"ff\r\nvllm:"), Reason.DISCONNECTED, "before the answer"),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-"), Reason.DISCONNECTED, "before the answer was complete"),
        (half_closed(PAGE), Reason.DISCONNECTED, "before the answer was complete"),
        (slam, Reason.DISCONNECTED, "before the answer was complete"),
        (raw(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 30_000), Reason.NOT_TEXT, "does not speak HTTP"),
    ],
)
def test_wrong_answers_have_a_reason_and_a_line(behaviour: Behaviour, reason: Reason, says: str) -> None:
    found, line = failed(observed(behaviour))
    assert (found, says in line) == (reason, True), line
    assert line.startswith("http://127.0.0.1:")
    assert "secret" not in line


def ranks(observation: Observation) -> int:
    assert observation.status.answering, observation.status.last_error
    assert observation.engine is not None
    return len(observation.engine.ranks)


async def odd_charset_and_late_body(exchange: Exchange) -> None:
    await exchange.send(head(content_type="text/plain; charset=utf-16", content_length=str(len(PAGE))))
    await exchange.send(PAGE[:1000])
    await exchange.send(PAGE[1000:])


@pytest.mark.parametrize(
    "behaviour",
    [
        page(b"\xef\xbb\xbf" + PAGE),
        page(PAGE, content_type="text/html; charset=nonsense"),
        odd_charset_and_late_body,
        packed(PAGE),
        page(gzip.compress(PAGE[:999]) + gzip.compress(PAGE[999:]), content_encoding="GZIP"),
        page(gzip.compress(PAGE), content_encoding="deflate"),
        chunked(PAGE, 1000),
        chunked(PAGE, 17),
        raw(b"HTTP/1.0 200 OK\r\n\r\n" + PAGE),
        raw(head(content_type=TEXT) + PAGE),
    ],
)
def test_odd_but_readable_answers_are_read(behaviour: Behaviour) -> None:
    assert ranks(observed(behaviour)) == 1


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_of_200_mb_is_left_after_the_limit(*, announced: bool) -> None:
    async def work() -> tuple[Observation, Server]:
        async with serving(flood(200 * MEGABYTE, announced=announced)) as server:
            return await read(source(server.url, max_body_bytes=MEGABYTE)), server

    with memory_stays_within(30):
        observation, server = run(work())
    reason, line = failed(observation)
    assert (reason, "larger than 1048576 bytes" in line) == ("too_large", True)
    # what the sockets' buffers swallow is sent, though never read
    assert server.sent < 20 * MEGABYTE


def test_a_gzip_bomb_is_not_unpacked() -> None:
    behaviour = bomb(200 * MEGABYTE)
    with memory_stays_within(30):
        reason, _ = failed(observed(behaviour, max_body_bytes=MEGABYTE))
    assert reason == "too_large"


def test_packed_pieces_that_unpack_to_nothing_end_too() -> None:
    unannounced = raw(head(content_encoding="gzip") + gzip.compress(b"") * 2000)
    assert failed(observed(unannounced, max_body_bytes=2048))[0] == "too_large"


def test_a_body_at_the_limit_is_read() -> None:
    assert ranks(observed(page(PAGE), max_body_bytes=len(PAGE))) == 1
    assert ranks(observed(packed(PAGE), max_body_bytes=len(PAGE))) == 1
    assert failed(observed(page(PAGE), max_body_bytes=len(PAGE) - 1))[0] == "too_large"
    assert failed(observed(packed(PAGE), max_body_bytes=len(PAGE) - 1))[0] == "too_large"


def test_an_engine_that_never_answers_is_left_at_the_deadline() -> None:
    reason, line = failed(observed(hang, deadline_seconds=0.3))
    assert (reason, "did not answer within 0.3 s" in line) == ("timeout", True), line


def test_the_deadline_is_for_the_whole_read_and_not_for_each_byte() -> None:
    reason, line = failed(observed(slow_loris(PAGE, 0.1), deadline_seconds=1.0))
    assert reason == "timeout"
    found = re.search(r"sent only (\d+) bytes within 1 s", line)
    assert found is not None, line
    # Client and server share a loop, whose timers fire in order: however late it is, no more bytes than
    # were due by the deadline.
    assert 1 <= int(found[1]) <= 12, line


def test_refused() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        reason, line = failed(run(read(source(url))))
    assert (reason, "nothing listens there" in line) == ("refused", True)


@pytest.mark.parametrize(
    ("host", "is_asked_for"),
    [("no-such-host.invalid", True), ("a" * 70 + ".invalid", True), ("xn--", True), ("ä" * 70, False)],
)
def test_a_name_that_cannot_be_resolved(
    monkeypatch: pytest.MonkeyPatch, host: str, *, is_asked_for: bool
) -> None:
    asked: list[str] = []

    def resolve(name: bytes | str, *_: object, **__: object) -> NoReturn:
        """As the resolver of a machine that finds nothing; the real one may ask other machines."""
        asked.append(name if isinstance(name, str) else name.decode())
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    reason, line = failed(run(read(source(f"http://{host}:8000/metrics?token=secret"))))
    assert (reason, "name cannot be resolved" in line) == ("dns", True)
    assert "secret" not in line
    # what can't be written as a name is refused before anyone is asked
    assert asked == ([host] if is_asked_for else [])


def test_redirects_are_not_followed_and_cookies_not_kept() -> None:
    async def work() -> None:
        async with serving(page(PAGE)) as target, serving(redirect(target.url)) as server:
            engine = source(server.url)
            await engine.read_once()
            server.behaviour = page(PAGE, set_cookie="session=1")
            await engine.read_once()
            await engine.read_once()
            assert (len(server.requests), len(target.requests)) == (3, 0)
            assert "cookie" not in server.requests[-1].headers

    run(work())


def test_the_environment_s_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with serving(page(PAGE)) as server, serving(slam) as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
            monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
            assert ranks(await read(source(server.url))) == 1
            assert proxy.connections == 0

    run(work())


@settings(max_examples=60, deadline=None, database=None)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=200).map(lambda body: head(content_length=str(len(body))) + body),
        st.binary(max_size=200).map(lambda body: head(content_encoding="gzip") + body),
        st.integers(0, len(PAGE)).map(lambda end: head(content_length=str(len(PAGE))) + PAGE[:end]),
    )
)
def test_no_answer_whatever_is_a_bug_of_ours(answer: bytes) -> None:
    status = observed(raw(answer), deadline_seconds=2.0).status
    assert status.answering or status.last_error
    assert Reason.INTERNAL not in dict(status.errors)
