"""``/api/v1/recorder`` of a real sidecar: what it gives, refuses, and never lets others wait for."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import os
import re
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Message

from exporter import recorder_api
from exporter.recorder_api import RecorderPage
from exporter.recorder_export import export_openmetrics
from exporter.recorder_reader import Recording
from exporter.recorder_request import understood
from exporter.recorder_selection import Selection
from exporter.recorder_writer import RecordingWriter, Retention
from tests.exporter.running import PAGE, Sidecar, engine, hanging_engine, running
from tests.exporter.web_files import HASH
from tests.support.recorder import START, TOKENS, second, snapshot

API = "/api/v1/recorder"
HERE = {"from": START, "to": START + 600}
_SECONDS = 2400
_WIDTH = 120
"""Enough for an answer that no socket holds: 20 MB."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of forty minutes, in 2027."""
    path = tmp_path_factory.mktemp("api") / "recording"
    writer = RecordingWriter(path, Retention())
    for place in range(_SECONDS):
        writer.write(second(place, _WIDTH))
    writer.close()
    return path


@pytest.fixture(scope="module")
def sidecar(file: Path) -> Iterator[Sidecar]:
    with engine(PAGE) as url, running("--engine", url, "--recorder", str(file)) as started:
        started.wait_until_ready()
        yield started


def get(
    sidecar: Sidecar, /, path: str = API, headers: dict[str, str] | None = None, **given: object
) -> httpx.Response:
    with sidecar.client() as client:
        return client.get(
            path, params={name.rstrip("_"): value for name, value in given.items()}, headers=headers
        )


def begun(client: httpx.Client) -> contextlib.AbstractContextManager[httpx.Response]:
    """An export of all there is, of which no more is taken than sockets hold."""
    return client.stream("GET", API, params={"from": 0}, headers={"Accept-Encoding": "identity"})


def exported(file: Path, selection: Selection) -> str:
    out = io.BytesIO()
    with Recording(file) as recording:
        export_openmetrics(recording, out, selection)
    return out.getvalue().decode()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def test_a_range_is_what_the_command_exports(sidecar: Sidecar, file: Path) -> None:
    answer = get(sidecar, from_="2027-01-15T08:00:10Z", to=START + 20.5)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.text == exported(file, Selection(START + 10, START + 20.5))
    assert answer.text.count("thrashold_kv_usage_ratio ") == 11 + 2  # and its head's two lines
    same = get(sidecar, from_="2027-01-15T09:00:10+01:00", to="2027-01-15T08:00:20.5Z")
    assert same.text == answer.text


def test_it_gives_the_last_hour_while_that_is_written(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    writer = RecordingWriter(path, Retention())
    before = time.time() - 2 * 3600
    for minute in range(118):
        writer.write(snapshot(before + 60 * minute, (TOKENS, (), float(minute))))
    writer.close()
    with engine(PAGE) as url, running("--engine", url, "--recorder", str(path)) as own:
        own.wait_until_ready()
        wait_until(lambda: "thrashold_cycles_total " in get(own).text)
        answer = get(own)
    tokens = [line for line in answer.text.splitlines() if line.startswith(f"{TOKENS.full_name} ")]
    assert [float(line.split()[1]) for line in tokens] == list(range(61, 118))
    assert "thrashold_source_up{" in answer.text


def test_signals_are_chosen_by_name(sidecar: Sidecar, file: Path) -> None:
    for name in ("kv_usage_ratio", "thrashold_kv_usage_ratio"):
        answer = get(sidecar, signal=name, **HERE)
        assert answer.text == exported(file, Selection(START, START + 600, ("kv_usage_ratio",)))
    assert len(re.findall("^[^#]", answer.text, re.MULTILINE)) == 600
    refused = get(sidecar, signal="kv_usage_rato")
    assert (refused.status_code, refused.text) == (
        400,
        "no signal kv_usage_rato is recorded; did you mean kv_usage_ratio?\n",
    )


def test_it_is_zipped_for_those_who_ask(sidecar: Sidecar) -> None:
    with sidecar.client() as client:
        plain = client.get(API, params=HERE, headers={"Accept-Encoding": "identity"})
        with client.stream("GET", API, params=HERE, headers={"Accept-Encoding": "gzip"}) as answer:
            raw = b"".join(answer.iter_raw())
    assert "content-encoding" not in plain.headers
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw) == plain.content
    assert len(raw) < len(plain.content) / 5


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("from=yesterday", "from: 'yesterday' is neither seconds since the epoch nor a time such as"),
        ("to=", "to: '' is neither"),
        ("from=nan", "from: 'nan' is neither"),
        ("from=1800000000000", "from: '1800000000000' is too far away: seconds since the epoch are meant"),
        ("to=2027-01-15T09:00:00+01:00", "; in a URL a + is written %2B"),
        ("from=20&to=20", "from must be before to"),
        ("from=1&from=2", "from is given twice"),
        ("start=1", "there is no parameter 'start'; there are from, to and signal"),
        ("from=\n1%0A<b>\xff", "is neither"),
        ("&".join(["signal=a"] * 101), "Max number of fields exceeded"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(query: str, line: str) -> None:
    with pytest.raises(ValueError, match=re.escape(line)) as refusal:
        understood(query, START)
    assert "\n" not in str(refusal.value)


def test_a_refusal_is_a_400(sidecar: Sidecar) -> None:
    answer = get(sidecar, from_="yesterday")
    assert answer.status_code == 400
    assert answer.text.startswith("from: 'yesterday' is neither")
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ("", START - 3600, None),
        ("from=100", 100.0, None),
        ("to=10000.5", 6400.5, 10000.5),
        ("from=1e3&to=2027-01-15T08:00:00Z", 1000.0, START),
        ("from=2027-01-15T09%3A00%3A00%2B01%3A00&to=1800000001", START, START + 1),
    ],
)
def test_the_end_is_open_and_the_start_an_hour_before(query: str, start: float, end: float | None) -> None:
    request = understood(query, START)
    assert (request.start, request.end) == (start, end)


@pytest.mark.parametrize(
    "given", [{"to": START - 1}, {"from_": START - 9000, "to": START - 7200}, {"from_": START + 1e9}]
)
def test_a_time_of_which_nothing_is_recorded_is_a_404_that_says_what_is(
    sidecar: Sidecar, given: dict[str, float]
) -> None:
    answer = get(sidecar, **given)
    assert answer.status_code == 404
    assert answer.text.startswith("nothing was recorded in that time: the recording is from ")


def test_there_is_none_where_nothing_is_recorded() -> None:
    with hanging_engine() as url, running("--engine", url) as other:
        answer = get(other)
        assert (answer.status_code, answer.text) == (
            404,
            "nothing is recorded: start the sidecar with --recorder FILE\n",
        )
        assert API not in other.get("/").text


def test_the_page_links_it(sidecar: Sidecar) -> None:
    wait_until(lambda: f'href="{API}"' in sidecar.get("/").text)


def test_it_is_behind_the_password(tmp_path: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users: {{prometheus: '{HASH}'}}\n")
    recording = tmp_path / "recording"
    with hanging_engine() as url:
        arguments = ("--engine", url, "--recorder", str(recording), "--web-config", str(config))
        with running(*arguments) as other, other.client() as client:
            assert client.get(API).status_code == 401
            wait_until(lambda: client.get(API, auth=("prometheus", "right")).text.endswith("# EOF\n"))


def test_one_export_at_a_time_and_nobody_waits_for_it(sidecar: Sidecar) -> None:
    with sidecar.client() as client, begun(client) as slow:
        assert slow.status_code == 200
        refused = get(sidecar, **HERE)
        assert refused.status_code == 503
        assert refused.text == "another export is under way; try again later\n"
        assert int(refused.headers["retry-after"]) > 0
        for _ in range(20):
            assert "thrashold_source_up" in sidecar.get("/metrics").text
        assert len(children(sidecar.process.pid)) == 1
    wait_until(lambda: not children(sidecar.process.pid))  # the client went away
    wait_until(lambda: get(sidecar, signal="kv_usage_ratio", **HERE).status_code == 200)
    assert "Traceback" not in sidecar.log()


def test_an_export_that_breaks_off_is_seen_to(sidecar: Sidecar) -> None:
    with sidecar.client() as client, begun(client) as answer:
        (child,) = children(sidecar.process.pid)
        os.kill(child, signal.SIGKILL)
        with pytest.raises(httpx.RemoteProtocolError):
            answer.read()
    assert "export of the recording: broke off" in sidecar.log()
    assert "Traceback" not in sidecar.log()


def test_the_end_does_not_wait_for_an_export(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "recording"
    copy.write_bytes(file.read_bytes())
    with hanging_engine() as url, running("--engine", url, "--recorder", str(copy)) as other:
        with other.client() as client, begun(client):
            (child,) = children(other.process.pid)
            other.terminate()
            assert other.process.returncode == 0
            wait_until(lambda: has_ended(child))
        assert "Traceback" not in other.log()
    assert [each.name for each in tmp_path.iterdir()] == ["recording"], "it is closed at the end"


def test_an_export_does_not_outlive_a_sidecar_that_is_killed(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "recording"
    copy.write_bytes(file.read_bytes())
    with (
        hanging_engine() as url,
        running("--engine", url, "--recorder", str(copy)) as other,
        other.client() as client,
        begun(client),
    ):
        (child,) = children(other.process.pid)
        other.process.kill()
        wait_until(lambda: has_ended(child))


def has_ended(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"  # nobody has asked how it went


def test_a_damaged_recording_is_a_503(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "recording"
    copy.write_bytes(file.read_bytes())
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE chunk SET data = x'00' WHERE id = 3")
    connection.close()
    with hanging_engine() as url, running("--engine", url, "--recorder", str(copy)) as other:
        answer = get(other, from_=0)
        assert answer.status_code == 503
        assert f"{copy}: is damaged: " in answer.text
        assert answer.text.count("\n") == 1
        assert get(other, from_=START + 1200).status_code == 200, "what is whole is given"


def test_a_client_that_takes_nothing_is_given_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_api, "STALL_SECONDS", 0.05)
    sent: list[Message] = []

    async def hang() -> Message:
        await asyncio.Event().wait()
        return {}

    async def send(message: Message) -> None:
        sent.append(message)
        if message["type"] == "http.response.body":
            await hang()

    async def call() -> None:
        scope = {"type": "http", "method": "GET", "query_string": b"from=0", "headers": []}
        await RecorderPage(file, time.time)(scope, hang, send)

    others = children(os.getpid())
    asyncio.run(call())
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert children(os.getpid()) == others
