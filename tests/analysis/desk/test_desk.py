"""The desk as Alertmanager, a person and a stranger meet it: the real command on loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.exporter.running import ROOT, clean_environment
from tests.support.desk import RunningDesk, alert, message, running_desk

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
TOKEN = "of this test"  # noqa: S105
HOSTILE = '"><script>alert(1)</script>../../x'
WRONG = {"authorization": "Bearer no"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    folder = tmp_path_factory.mktemp("desk")
    token = folder / "token"
    token.write_text(TOKEN + "\n")
    config = folder / "desk.yaml"
    config.write_text(f"webhook_token_file: {token}\njoin_seconds: 0\n")
    with running_desk(folder / "data", ("--config", str(config))) as found:
        yield found


def post(desk: RunningDesk, body: bytes, **headers: str) -> httpx.Response:
    with desk.client() as client:
        return client.post("/alerts", content=body, headers={"authorization": f"Bearer {TOKEN}"} | headers)


def opened(desk: RunningDesk, cluster: str, **labels: str) -> int:
    """An incident of its own; gives its number."""
    body = message(
        alert("KvThrashing", f"{abs(hash(cluster)):x}", time.time() - 60, cluster=cluster, **labels)
    )
    assert post(desk, body).status_code == 200
    with desk.client() as client:
        return next(
            each["number"]
            for each in client.get("/api/v1/incidents").json()
            if each["cluster"] == {"cluster": cluster}
        )


def test_a_wrong_token_and_a_wrong_body_are_refused_and_nothing_is_kept(desk: RunningDesk) -> None:
    with desk.client() as client:
        before = client.get("/api/v1/incidents").json()
        body = message(alert("A", "aa", time.time(), cluster="nobody"))
        assert client.post("/alerts", content=body).status_code == 401
        assert client.post("/alerts", content=body, headers=WRONG).status_code == 401
        assert client.post("/watchdog", content=body).status_code == 401
        assert post(desk, b"{").status_code == 400
        assert post(desk, b"[" * 100_000).status_code == 400
        assert post(desk, b" " * (9 * 1024 * 1024)).status_code == 413
        assert client.get("/api/v1/incidents").json() == before


def test_what_labels_hold_is_text_and_no_path(desk: RunningDesk) -> None:
    number = opened(desk, HOSTILE, engine=HOSTILE)
    with desk.client() as client:
        for path in ("/", f"/incidents/{number}"):
            page = client.get(path)
            assert "<script>alert" not in page.text
            assert "&lt;script&gt;alert(1)" in page.text
            assert "default-src 'none'" in page.headers["content-security-policy"]
        assert client.get(f"/incidents/{number}/report").status_code == 404
        for path in (
            "/incidents/..%2f..%2fdesk.db/report",
            "/incidents/1e3/report",
            "/incidents/-1",
            f"/incidents/{10**30}",
        ):
            assert client.get(path).status_code in {404, 422}


def test_it_answers_to_its_own_names_and_pages_only(desk: RunningDesk) -> None:
    number = opened(desk, "names")
    with desk.client() as client:
        assert client.get("/", headers={"host": "attacker.example"}).status_code == 421
        close = f"/incidents/{number}/close"
        assert (
            client.post(close, data={"note": "x"}, headers={"origin": "http://attacker.example"}).status_code
            == 403
        )
        assert (
            client.post(close, data={"note": "x"}, headers={"sec-fetch-site": "cross-site"}).status_code
            == 403
        )
        assert client.get(f"/api/v1/incidents/{number}").json()["state"] == "goes on"
        assert client.post(close, data={"note": "a load test"}).status_code == 303
        told = client.get(f"/api/v1/incidents/{number}").json()
        assert (told["state"], told["note"]) == ("closed", "a load test")
        assert client.get("/api/v1/incidents/999999").status_code == 404


def test_progress_is_told_as_it_happens_and_a_report_that_fails_says_why(desk: RunningDesk) -> None:
    number = opened(desk, "progress", engine="nobody-knows")
    lines: list[str] = []
    with desk.client() as client, client.stream("GET", f"/api/v1/incidents/{number}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            lines.append(line)
            if line.startswith("data:") and json.loads(line[5:]).get("done"):
                break
    texts = [json.loads(line[5:])["text"] for line in lines if line.startswith("data:")]
    assert any("there is no history" in text and "`workers`" in text for text in texts)
    assert "could not be made" in texts[-1]
    with desk.client() as client:
        # a page that was away asks from the last number that it has seen
        last = max(int(line[4:]) for line in lines if line.startswith("id: "))
        with client.stream(
            "GET", f"/api/v1/incidents/{number}/events", headers={"last-event-id": str(last - 1)}
        ) as again:
            first = next(line for line in again.iter_lines() if line.startswith("id: "))
        assert first == f"id: {last}"


def test_the_api_is_described(desk: RunningDesk) -> None:
    with desk.client() as client:
        described = client.get("/openapi.json").json()
        assert {"/alerts", "/api/v1/incidents", "/api/v1/incidents/{number}/events"} <= set(
            described["paths"]
        )
        assert client.get("/docs").status_code == 404


def test_what_was_acknowledged_survives_a_kill_and_comes_once(tmp_path: Path) -> None:
    folder, now = tmp_path / "data", time.time()
    acknowledged: list[str] = []
    with running_desk(folder) as desk, desk.client() as client:
        for place in range(10_000):
            name = f"{place:x}"
            if place == 150:
                os.kill(desk.process.pid, signal.SIGKILL)
            try:
                answer = client.post(
                    "/alerts", content=message(alert("A", name, now, cluster=f"c{place % 7}"))
                )
            except httpx.HTTPError:
                break
            assert answer.status_code == 200
            acknowledged.append(name)
    assert 150 <= len(acknowledged) < 10_000
    with running_desk(folder) as desk, desk.client() as client:
        for name in acknowledged[-20:]:  # Alertmanager tells again what it got no answer for, and more
            client.post("/alerts", content=message(alert("A", name, now, cluster=f"c{int(name, 16) % 7}")))
        incidents = client.get("/api/v1/incidents").json()
        assert len(incidents) == 7
        kept = sum(
            len(client.get(f"/api/v1/incidents/{each['number']}").json()["alerts"]) for each in incidents
        )
    assert kept in {len(acknowledged), len(acknowledged) + 1}


def _refused(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "thrashold", "desk", *arguments],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_settings_that_cannot_be_used_are_refused_with_the_key(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    config = tmp_path / "desk.yaml"
    everywhere = (*data, "--listen", "0.0.0.0:0")
    assert "read incidents and close them: set passwords" in _refused(*everywhere)
    (tmp_path / "token").write_text(TOKEN)
    config.write_text("webhook_token_file: token\n")
    assert "read incidents and close them: set passwords" in _refused(*everywhere, "--config", str(config))
    config.write_text("open_pages: true\n")
    assert "webhook_token_file, or passwords" in _refused(*everywhere, "--config", str(config))
    config.write_text("workers:\n  - {engines: [a], sidecar: 'http://user:pw@h'}\n")
    told = _refused(*data, "--config", str(config))
    assert f"{config}:2" in told
    assert "pw" not in told.replace(str(config), "")
    config.write_text(
        "workers:\n  - {engines: [a], sidecar: 'http://h:1'}\n  - {engines: [b, a], sidecar: 'http://h:2'}\n"
    )
    assert "a is there twice" in _refused(*data, "--config", str(config))
    config.write_text("join_secnds: 3\n")
    assert "join_seconds" in _refused(*data, "--config", str(config))
    with socket.create_server(("127.0.0.1", 0)) as held:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "thrashold",
                "desk",
                *data,
                "--listen",
                f"127.0.0.1:{held.getsockname()[1]}",
            ],
            cwd=ROOT,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert "can't listen on" in done.stderr
