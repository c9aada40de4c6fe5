"""The desk under kills, crowds, strangers' pages and workers that lead elsewhere; without a token."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import bcrypt
import httpx
import pytest

from analysis.desk import application
from analysis.desk.application import Changes, Desk
from analysis.desk.schedule import Schedule
from analysis.desk.store import Store
from analysis.desk.work import Given, Worker
from tests.support.desk import RunningDesk, alert, message, running_desk

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
FOLLOWERS = 200
CROWD = 1200


def until(holds: Callable[[], object], seconds: float = 40.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return [int(each) for task in tasks.iterdir() for each in (task / "children").read_text().split()]


def runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextlib.contextmanager
def worker(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """A sidecar that isn't one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def configured(folder: Path, text: str) -> tuple[str, str]:
    (folder / "desk.yaml").write_text(text)
    return "--config", str(folder / "desk.yaml")


def told(desk: RunningDesk) -> dict[str, object]:
    with desk.client() as client:
        found: dict[str, object] = client.get("/api/v1/incidents/1").json()
    return found


def page(desk: RunningDesk, name: str = "aa", **headers: str) -> int:
    with desk.client() as client:
        body = message(alert("A", name, time.time(), cluster="p"))
        return client.post("/alerts", content=body, headers=headers).status_code


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_ends_with_its_desk_and_is_begun_anew(tmp_path: Path, how: signal.Signals) -> None:
    over = threading.Event()
    with worker(lambda _: bool(over.wait(60)) and None) as url:
        arguments = configured(tmp_path, f"workers: ['{url}']\n")
        with running_desk(tmp_path / "data", arguments) as desk:
            assert page(desk) == 200
            until(lambda: children(desk.process.pid))
            (job,) = children(desk.process.pid)
            until((tmp_path / "data/incidents/1/new/recorded.om").exists)
            desk.process.send_signal(how)
            desk.process.wait(30)
            until(lambda: not runs(job), 5)
        with running_desk(tmp_path / "data", arguments) as desk:
            until(lambda: told(desk)["report"] == "running")
            over.set()


def test_a_recorder_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    asked: list[str] = []

    def elsewhere(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.path)
        request.send_error(404)

    with worker(elsewhere) as other:

        def leads(request: BaseHTTPRequestHandler) -> None:
            request.send_response(302)
            request.send_header("Location", other)
            request.end_headers()

        with (
            worker(leads) as url,
            running_desk(tmp_path / "data", configured(tmp_path, f"workers: ['{url}']\n")) as desk,
        ):
            assert page(desk) == 200
            until(lambda: told(desk)["report"] == "failed")
            assert "302" in json.dumps(told(desk)["events"])
    assert asked == []


def test_pages_of_others_tell_it_nothing_and_a_strange_host_is_refused(tmp_path: Path) -> None:
    with running_desk(tmp_path / "data") as desk:
        assert page(desk, origin="http://attacker.example") == 403
        assert page(desk, origin="null") == 403
        assert page(desk, **{"sec-fetch-site": "cross-site"}) == 403
        for host in ("[", "[::1", "attacker.example", "127.0.0.1.attacker.example", "@127.0.0.1x", ""):
            assert page(desk, host=host) == 421, host
        assert told(desk) == {"detail": "there is no such incident"}
        assert page(desk, host="[::1]:9808") == 200


def test_names_of_its_own_can_be_given(tmp_path: Path) -> None:
    with running_desk(tmp_path / "data", configured(tmp_path, "host_names: [desk.example]\n")) as desk:
        assert page(desk, host="desk.example:9808") == 200
        assert page(desk, host="127.0.0.1") == 200
        assert page(desk, host="other.example") == 421


def test_a_crowd_of_followers_keeps_no_alert_out_and_hears_of_new_ones_at_once(tmp_path: Path) -> None:
    with running_desk(tmp_path / "data") as desk, contextlib.ExitStack() as crowd:
        assert page(desk) == 200
        until(lambda: told(desk)["report"] == "failed")
        port = int(desk.url.rpartition(":")[2])
        streams = []
        for _ in range(FOLLOWERS):
            stream = crowd.enter_context(socket.create_connection(("127.0.0.1", port), 20))
            stream.sendall(b"GET /api/v1/incidents/1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            streams.append(stream)
        for stream in streams:
            assert b" 200 " in stream.recv(4096)
        with desk.client() as client:
            refused = client.get("/api/v1/incidents/1/events")
            assert (refused.status_code, "follow already" in refused.text) == (503, True)
        began = time.monotonic()
        assert page(desk, "bb") == 200
        for stream in streams:
            heard = b""
            while b"A fires" not in heard.split(b"could not be made")[-1]:
                heard += stream.recv(4096)
        assert time.monotonic() - began < application._KEEP_ALIVE_SECONDS  # noqa: SLF001 - when they would look anyhow
        crowd.close()
        until(lambda: _followed(desk))


def _followed(desk: RunningDesk) -> bool:
    with desk.client() as client, client.stream("GET", "/api/v1/incidents/1/events") as stream:
        return stream.status_code == 200


def test_a_changed_password_is_taken_up_while_it_runs(tmp_path: Path) -> None:
    def write(password: str) -> None:
        hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
        (tmp_path / "web.yml").write_text(f"basic_auth_users: {{ann: '{hashed}'}}\n")

    def status(desk: RunningDesk, password: str) -> int:
        with desk.client(auth=("ann", password)) as client:
            return client.get("/").status_code

    write("first")
    with running_desk(tmp_path / "data", configured(tmp_path, "web_config: web.yml\n")) as desk:
        assert (status(desk, "first"), status(desk, "second"), page(desk)) == (200, 401, 401)
        write("second")
        until(lambda: status(desk, "second") == 200)
        assert status(desk, "first") == 401


def test_a_body_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "_BODY_SECONDS", 0.05)

    async def drops() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    async def asked() -> httpx.Response:
        with Store(tmp_path / "desk.db", (), 0.0) as store:
            changes = Changes()
            work = Worker(
                store, tmp_path, Given(None, {}, {}), Schedule(300.0, 3600.0, 300.0), time.time, changes
            )
            app = application.application(Desk(store, work, changes, time.time, ""))
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://localhost"
            ) as client:
                return await client.post("/alerts", content=drops())

    answer = asyncio.run(asked())
    assert (answer.status_code, "not whole" in answer.text) == (408, True)


def test_a_crowd_that_asks_for_nothing_or_for_half_keeps_no_alert_out(tmp_path: Path) -> None:
    """More than the server has room for, with heads and bodies that don't come to an end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    halves = (b"", b"GET / HT", b"POST /alerts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
    with running_desk(tmp_path / "data") as desk, contextlib.ExitStack() as crowd:
        port = int(desk.url.rpartition(":")[2])
        for number in range(CROWD):
            stranger = crowd.enter_context(socket.create_connection(("127.0.0.1", port), 20))
            stranger.sendall(halves[number % len(halves)])
        assert [page(desk, f"{number:x}") for number in range(5)] == [200] * 5
        assert len(told(desk)["alerts"]) == 5  # type: ignore[arg-type]


def test_a_changed_token_is_taken_up_at_once_and_a_broken_one_leaves_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "token"

    def status(desk: RunningDesk, token: str) -> int:
        return page(desk, authorization=f"Bearer {token}")

    file.write_text("first\n")
    with running_desk(tmp_path / "data", configured(tmp_path, "webhook_token_file: token\n")) as desk:
        assert (status(desk, "first"), status(desk, "second")) == (200, 401)
        (tmp_path / "new").write_text("second\n")
        (tmp_path / "new").replace(file)  # as mounted secrets are exchanged
        assert (status(desk, "second"), status(desk, "first")) == (200, 401)
        file.write_text("")
        assert (status(desk, "second"), status(desk, "x")) == (200, 401)
        file.unlink()
        assert (status(desk, "second"), status(desk, "x")) == (200, 401)
        file.write_text("third")
        assert (status(desk, "third"), status(desk, "second")) == (200, 401)
    assert "third" not in desk.log.read_text()


def test_a_recorder_that_is_busy_is_asked_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def busy_at_first(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.path)
        request.send_response(503 if len(asked) == 1 else 404)
        request.end_headers()

    with (
        worker(busy_at_first) as url,
        running_desk(tmp_path / "data", configured(tmp_path, f"workers: ['{url}']\n")) as desk,
    ):
        assert page(desk) == 200
        until(lambda: told(desk)["report"] == "failed")
        assert "is busy" in json.dumps(told(desk)["events"])
    # the part that it was too busy for is asked for again, and every other once
    assert asked[0] == asked[1]
    assert len(asked) == len(set(asked)) + 1
