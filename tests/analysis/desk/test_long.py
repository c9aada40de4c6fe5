"""Incidents that go on: hours of them are told, as they go on and when they are over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.analysis.desk.test_strangers import configured, told, until, worker
from tests.support.desk import RunningDesk, alert, message, running_desk
from tests.support.desk_incident import desk_of_the_incident, report_is_there, tell

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
HOUR = 3600.0
LABELS = {"cluster": "p", "engine": "e"}
PAGE = (
    b"# TYPE thrashold_kv_usage_ratio gauge\n"
    b'thrashold_kv_usage_ratio{engine="e",rank="0",model_name="m"} 0.5 %d\n# EOF\n'
)


class Recorder:
    """A sidecar's: from ``since`` on it has one value in each range, before that nothing. Notes what it is asked."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.asked: list[tuple[float, float]] = []
        self._lock = threading.Lock()

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        query = parse_qs(urlsplit(request.path).query)
        start, end = (float(query[name][0]) for name in ("from", "to"))
        with self._lock:
            self.asked.append((start, end))
        body = PAGE % max(start, self.since) if end > self.since else b""
        request.send_response(200 if body else 404)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


@pytest.fixture
def long_ago() -> Iterator[tuple[Recorder, str]]:
    recorder = Recorder(time.time() - 1.5 * HOUR)
    with worker(recorder) as url:
        yield recorder, url


def post(desk: RunningDesk, starts: float, ends: float | None = None) -> None:
    with desk.client() as client:
        client.post("/alerts", content=message(alert("A", "aa", starts, ends, **LABELS))).raise_for_status()


def test_what_began_three_hours_ago_is_told_until_now(tmp_path: Path) -> None:
    """The trouble itself is of the last half hour: a report of the first hour alone would not know of it."""
    with desk_of_the_incident(tmp_path) as desk:
        now = time.time()
        tell(desk, now - 3 * HOUR, "engine-0")
        report_is_there(desk)
        assert told(desk)["reported_until"] == pytest.approx(now, abs=30)
        with desk.client() as client:
            report = client.get("/incidents/1/report.json").json()
        assert report["causes"][0]["cause"] == "swap-thrash"


def test_a_recording_of_hours_is_asked_for_piece_by_piece(
    tmp_path: Path, long_ago: tuple[Recorder, str]
) -> None:
    recorder, url = long_ago
    with running_desk(tmp_path / "data", configured(tmp_path, f"workers: ['{url}']\n")) as desk:
        now = time.time()
        post(desk, now - 3 * HOUR)
        until(lambda: told(desk)["report"] in {"done", "failed"})
        asked = sorted(recorder.asked)
        assert (asked[0][0], asked[-1][1]) == (
            pytest.approx(now - 4 * HOUR, abs=1),
            pytest.approx(now, abs=30),
        )
        assert [end for _, end in asked[:-1]] == pytest.approx([start for start, _ in asked[1:]])
        assert all(end - start <= HOUR + 0.01 for start, end in asked)
        # a sidecar that is younger than that has told what it has, and what it hasn't is said
        events = str(told(desk)["events"])
        assert "3 of 5 parts of that time are not in it" in events


def test_it_is_told_anew_while_it_goes_on_until_somebody_closes_it(tmp_path: Path) -> None:
    recorder = Recorder(time.time() - HOUR)
    settings = "report_again_seconds: 10\njoin_seconds: 0\n"
    with (
        worker(recorder) as url,
        running_desk(tmp_path / "data", configured(tmp_path, f"workers: ['{url}']\n{settings}")) as desk,
    ):
        began = time.time()
        post(desk, began)
        until(lambda: len({end for _, end in recorder.asked}) >= 4)  # two pieces each
        assert time.time() - began > 10
        until(lambda: told(desk)["report"] in {"done", "failed"})
        with desk.client() as client:
            client.post("/api/v1/incidents/1/close").raise_for_status()
        asked = len(recorder.asked)
        time.sleep(25)
        assert len(recorder.asked) == asked


def test_one_whose_report_took_long_and_failed_is_not_tried_again_at_once(tmp_path: Path) -> None:
    asked: list[str] = []

    def slow_and_empty(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.path)
        time.sleep(8.0 if len(asked) == 1 else 0.0)  # the desk looks each five seconds what is due
        request.send_response(404)
        request.end_headers()

    with (
        worker(slow_and_empty) as url,
        running_desk(tmp_path / "data", configured(tmp_path, f"workers: ['{url}']\n")) as desk,
    ):
        post(desk, time.time() - 3 * HOUR)
        until(lambda: told(desk)["report"] == "failed")
        parts = len(asked)
        time.sleep(12.0)
        assert (told(desk)["report"], len(asked)) == ("failed", parts)


def test_one_of_days_is_told_by_its_beginning_and_says_so(
    tmp_path: Path, long_ago: tuple[Recorder, str]
) -> None:
    recorder, url = long_ago
    settings = f"workers: ['{url}']\nreport_hours: 2\n"
    with running_desk(tmp_path / "data", configured(tmp_path, settings)) as desk:
        now = time.time()
        post(desk, now - 30 * HOUR)
        until(lambda: told(desk)["report"] in {"done", "failed"})
        assert max(end for _, end in recorder.asked) == pytest.approx(now - 28 * HOUR, abs=1)
        assert "the report looks at the first 2 h of it" in str(told(desk)["events"])


def test_many_workers_over_hours_are_asked_of_the_server_where_there_is_one(
    tmp_path: Path, long_ago: tuple[Recorder, str]
) -> None:
    recorder, url = long_ago
    workers = "".join(f"  - {{sidecar: '{url}', engines: [e{each}]}}\n" for each in range(6))
    body = message(
        *(
            alert("A", f"{each:x}", time.time() - 3 * HOUR, cluster="p", engine=f"e{each}")
            for each in range(6)
        )
    )

    def asked_with(more: str, folder: Path) -> str:
        folder.mkdir()
        recorder.asked.clear()
        with running_desk(folder / "data", configured(folder, f"workers:\n{workers}{more}")) as desk:
            with desk.client() as client:
                client.post("/alerts", content=body).raise_for_status()
            until(lambda: told(desk)["report"] in {"done", "failed"})
            return str(told(desk)["events"])

    # 16 hours of all workers together: four of them over four hours each
    events = asked_with("", tmp_path / "alone")
    assert "the first 3 are asked" in events
    assert len(recorder.asked) == 3 * 5
    events = asked_with("prometheus: http://127.0.0.1:9\n", tmp_path / "server")
    assert "history comes from http://127.0.0.1:9" in events
    assert recorder.asked == []
