from __future__ import annotations

import gzip
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import trustme

from analysis.frame import Frame, Key
from analysis.history.history import HistoryError
from analysis.history.server import read_server
from analysis.history.server_settings import ServerSettings
from exporter.connection_settings import BasicAuthSettings, TlsSettings
from exporter.derive.blocks import KV_USAGE
from exporter.derive.preemption import PREEMPTIONS as PREEMPTED
from exporter.signal import PEAK_SUFFIX
from tests.support import remote_write, victoria_metrics
from tests.support.asked_server import Answering, Reply, Request, answering, passing_on
from tests.support.prometheus import Prometheus, openmetrics, serving

pytestmark = pytest.mark.long

DAY = 86_400
START = 1_796_083_200 - 3 * DAY
END = START + 2 * DAY
STEP = 15
SCRAPED_AT = 7.25
HOLE = (START + DAY - 600, START + DAY + 1200)
LATER = float(END + DAY)
USAGE, PEAK, PREEMPTIONS = KV_USAGE.full_name, KV_USAGE.full_name + PEAK_SUFFIX, PREEMPTED.full_name
ENGINES = ("a", 'b "quoted"\\ä')
RAW = ("vllm:num_requests_running", "vllm:e2e_request_latency_seconds_count")


def times() -> np.ndarray:  # type: ignore[type-arg]
    every = START + STEP * np.arange(2 * DAY // STEP) + SCRAPED_AT
    return every[(every < HOLE[0]) | (every >= HOLE[1])]


def series() -> list[tuple[dict[str, str], np.ndarray]]:  # type: ignore[type-arg]
    """All that the servers of these tests know."""
    at = times()
    found = []
    for place, engine in enumerate(ENGINES):
        usage = np.round(0.5 + 0.4 * np.sin(at / 5000 + place), 6)
        usage[100] = np.nan
        found += [
            ({"__name__": USAGE, "engine": engine, "rank": "0"}, usage),
            ({"__name__": PEAK, "engine": engine, "rank": "0"}, np.round(usage + 0.05, 6)),
            (
                {"__name__": PREEMPTIONS, "engine": engine, "rank": "0"},
                np.floor((at - START) * 1e6 * (place + 1)),
            ),
        ]
    return [
        *found,
        ({"__name__": "thrashold_of_somebody_else"}, at),
        ({"__name__": "up", "job": "x"}, at * 0 + 1),
    ]


def raw() -> list[tuple[dict[str, str], np.ndarray]]:  # type: ignore[type-arg]
    """A server without sidecars: an engine, and another process."""
    at = times()
    found = [({"__name__": name, "instance": "10.0.0.1:8000", "model_name": "m"}, at % 100) for name in RAW]
    start = "process_start_time_seconds"
    return [
        *found,
        ({"__name__": start, "instance": "10.0.0.1:8000"}, at * 0 + START),
        ({"__name__": start, "instance": "10x0y0z1:8000"}, at * 0 + 7),
        ({"__name__": "node_load1", "instance": "10.0.0.1:8000"}, at * 0),
    ]


def fill(server: Prometheus, what: list[tuple[dict[str, str], np.ndarray]]) -> None:  # type: ignore[type-arg]
    milliseconds = np.round(times() * 1000).astype(np.int64)
    for low in range(0, len(milliseconds), 240):
        part = slice(low, low + 240)
        server.write(
            remote_write.body(
                (labels, remote_write.samples(milliseconds[part], values[part])) for labels, values in what
            )
        )


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Two days of two engines, with half an hour missing around midnight."""
    folder = tmp_path_factory.mktemp("prometheus")
    with serving(None, folder, "--web.enable-remote-write-receiver", "--query.max-samples=4000") as server:
        fill(server, series())
        yield server


@pytest.fixture(scope="module")
def raw_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with serving(None, tmp_path_factory.mktemp("raw"), "--web.enable-remote-write-receiver") as server:
        fill(server, raw())
        yield server


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test keeps anything in the cache of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def expected(values: np.ndarray, frame: Frame) -> np.ndarray:  # type: ignore[type-arg]
    """Each sample stands at the instant after it."""
    column = np.full(len(frame), np.nan)
    places = np.round((times() - SCRAPED_AT + STEP - frame.start) / STEP).astype(int)
    inside = (places >= 0) & (places < len(frame))
    column[places[inside]] = values[inside]
    return column


def check(frame: Frame) -> None:
    """All of our signals are there, to the bit."""
    assert frame.step_seconds == STEP
    assert {key.name for key in frame.keys} == {USAGE, PEAK, PREEMPTIONS}
    assert len(frame.keys) == 6
    for labels, values in series()[:6]:
        named = dict(labels)
        column = frame.column(Key.of(named.pop("__name__"), named))
        assert np.array_equal(column, expected(values, frame), equal_nan=True), labels


def test_all_signals_are_read_to_the_bit_though_the_server_refuses_a_day_at_once(
    prometheus: Prometheus,
) -> None:
    with answering(passing_on(prometheus.url)) as between:
        history = read_server(between.url, START, END, use_cache=False)
    check(history.frame)
    assert history.notes == ()
    assert history.source == between.url
    assert history.frame.start == START + STEP
    assert history.frame.end == END
    gone = (history.frame.times > HOLE[0] + STEP) & (history.frame.times < HOLE[1])
    assert np.isnan(history.frame.values[gone]).all()
    # a day is 5,760 samples a series, and the server loads 4,000 at most
    asked = [(each.form["query"], each.form["time"]) for each in between.asked("/api/v1/query")]
    assert len(asked) == len(set(asked)), "what was refused is never asked for again"


def test_a_second_reading_asks_for_nothing_that_was_read(prometheus: Prometheus, tmp_path: Path) -> None:
    with answering(passing_on(prometheus.url)) as between:
        first = read_server(between.url, START, END, cache_folder=tmp_path, now=LATER)
        asked = len(between.asked("/api/v1/query"))
        # another step: what is kept is samples
        again = read_server(between.url, START, END, cache_folder=tmp_path, now=LATER, step_seconds=60)
        check(first.frame)
        assert len(between.asked("/api/v1/query")) == asked, "nor for what was refused"
        assert again.frame.step_seconds == 60
        usage = again.frame.select(KV_USAGE, engine="a")
        assert usage.values[0, 0] == series()[0][1][3]
        other = ServerSettings(between.url, headers={"X-Scope-OrgID": "b"})
        read_server(other, START, END, cache_folder=tmp_path, now=LATER)
        assert len(between.asked("/api/v1/query")) >= 2 * asked, "another tenant shares nothing"
    files = list(tmp_path.glob("*/*.parquet"))
    assert files
    assert all(path.parent.stat().st_mode & 0o077 == 0 for path in files)


def test_an_interrupted_reading_goes_on_where_it_was(prometheus: Prometheus, tmp_path: Path) -> None:
    def interrupt(share: float, _: int) -> None:
        if share >= 0.5:
            raise KeyboardInterrupt

    with answering(passing_on(prometheus.url)) as between:
        settings = ServerSettings(between.url, parallel=1)
        with pytest.raises(KeyboardInterrupt):
            read_server(settings, START, END, cache_folder=tmp_path, now=LATER, progress=interrupt)
        kept = {path.name for path in tmp_path.glob("*/*.parquet")}
        before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.parquet")}
        shares: list[tuple[float, int]] = []
        history = read_server(
            settings, START, END, cache_folder=tmp_path, now=LATER, progress=lambda *told: shares.append(told)
        )
    check(history.frame)
    assert kept
    assert all(path.stat().st_mtime_ns == at for path, at in before.items()), "nothing was read anew"
    assert len(list(tmp_path.glob("*/*.parquet"))) > len(kept)
    assert not list(tmp_path.glob("*/*.part"))
    assert [share for share, _ in shares] == sorted(share for share, _ in shares)
    assert shares[-1] == (pytest.approx(1.0), 6 * len(times()))


def test_what_may_still_change_and_what_is_damaged_is_read_anew(
    prometheus: Prometheus, tmp_path: Path
) -> None:
    read_server(prometheus.url, START, END, cache_folder=tmp_path, now=float(END))
    kept = sorted(tmp_path.glob("*/*.parquet"))
    settled = read_server(prometheus.url, START, END, cache_folder=tmp_path, now=LATER)
    assert len(kept) < len(list(tmp_path.glob("*/*.parquet")))
    kept[0].write_bytes(b"PAR1 and then nothing of it")
    kept[-1].write_bytes(kept[-1].read_bytes()[:-100])
    damaged = read_server(prometheus.url, START, END, cache_folder=tmp_path, now=LATER)
    check(settled.frame)
    check(damaged.frame)


def test_a_cache_that_cant_be_written_costs_nothing_but_the_cache(
    prometheus: Prometheus, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    check(read_server(prometheus.url, START, END, cache_folder=tmp_path / "file", now=LATER).frame)


def test_names_and_matchers_and_a_range_narrow_it(prometheus: Prometheus) -> None:
    history = read_server(
        prometheus.url,
        START + 3600,
        START + 7200,
        names=[USAGE, "thrashold_nowhere"],
        matchers=["engine=~a|c", 'rank!="1"'],
        use_cache=False,
    )
    assert history.frame.keys == (Key.of(USAGE, {"engine": "a", "rank": "0"}),)
    assert len(history.frame) == 239
    assert history.frame.start == START + 3600 + STEP
    assert history.notes == ("not there: thrashold_nowhere",)
    quoted = json.dumps(ENGINES[1], ensure_ascii=False)
    other = read_server(prometheus.url, START, START + 3600, matchers=[f"engine={quoted}"], use_cache=False)
    assert {key.label("engine") for key in other.frame.keys} == {ENGINES[1]}


def test_where_there_are_no_signals_the_engines_own_series_are_read(raw_prometheus: Prometheus) -> None:
    history = read_server(raw_prometheus.url, START, END, use_cache=False)
    names = {str(key) for key in history.frame.keys}
    instance = 'instance="10.0.0.1:8000"'
    assert names == {
        *(f'{name}{{{instance},model_name="m"}}' for name in RAW),
        f"process_start_time_seconds{{{instance}}}",
    }
    assert history.notes == (
        "the server has no signals of thrashold: read the engines' and exporters' own series",
    )


def test_a_part_of_the_range_before_the_first_sample_is_said(prometheus: Prometheus) -> None:
    history = read_server(prometheus.url, START - 10 * DAY, END + 3 * DAY, use_cache=False, now=LATER)
    check(history.frame)
    assert len(history.notes) == 2
    assert history.notes[0].startswith("there is nothing before 20")
    assert history.notes[1].startswith("there is nothing from 20")


def test_victoria_metrics_gives_the_same_by_its_export_and_by_queries(tmp_path: Path) -> None:
    with victoria_metrics.serving(tmp_path) as server:
        fill(server, series())
        victoria_metrics.flush(server)
        with answering(passing_on(server.url)) as between:
            exported = read_server(between.url, START, END, use_cache=False)
            assert between.asked("/api/v1/query") == []
            assert len(between.asked("/api/v1/export")) > 2

            def without(request: Request) -> Reply:
                if request.path == "/api/v1/export":
                    return Reply(b"404 page not found", 404)
                return passing_on(server.url)(request)

            between.answering = without
            queried = read_server(between.url, START, END, use_cache=False)
    check(exported.frame)
    check(queried.frame)
    assert exported.notes == queried.notes == ()


def test_a_path_a_tenant_and_a_token_are_sent_as_given(prometheus: Prometheus, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("swordfish\n")
    upstream = passing_on(prometheus.url)

    def mimir(request: Request) -> Reply:
        if (
            request.headers.get("x-scope-orgid") != "team"
            or request.headers["authorization"] != "Bearer swordfish"
        ):
            return Reply(b"no org id", 401)
        if not request.path.startswith("/prometheus/api/v1/"):
            return Reply(b"404 page not found", 404)
        return upstream(Request(request.method, request.path.removeprefix("/prometheus"), request.form, {}))

    with answering(mimir) as server:
        settings = ServerSettings(
            f"{server.url}/prometheus/graph", headers={"X-Scope-OrgID": "team"}, bearer_token_file=token
        )
        history = read_server(settings, START, END, use_cache=False)
        check(history.frame)
        assert history.source == f"{server.url}/prometheus"
        wrong = ServerSettings(
            f"{server.url}/prometheus/",
            basic_auth=BasicAuthSettings("me", "secret"),
            headers={"X-Scope-OrgID": "t"},
        )
        with pytest.raises(
            HistoryError, match=r"answered 401 Unauthorized; give a user.*X-Scope-OrgID"
        ) as error:
            read_server(wrong, START, END, use_cache=False)
        assert "secret" not in str(error.value)
        token.unlink()
        with pytest.raises(HistoryError, match=r"bearer_token_file .* cannot be read"):
            read_server(settings, START, END, use_cache=False)


def test_a_server_that_takes_no_post_is_asked_by_get(prometheus: Prometheus) -> None:
    upstream = passing_on(prometheus.url)

    def reads_only(request: Request) -> Reply:
        return upstream(request) if request.method == "GET" else Reply(b"no", 405)

    with answering(reads_only) as server:
        check(read_server(server.url, START, END, use_cache=False).frame)


def dying(upstream: Answering, pieces: int) -> Answering:
    """Answers so many pieces and is gone then, in the middle of an answer."""
    left = threading.Semaphore(pieces)

    def answer(request: Request) -> Reply:
        if request.path == "/api/v1/query" and not left.acquire(blocking=False):
            return Reply(b'{"status":"success","data":' + b" " * 1000, cut_off=500)
        return upstream(request)

    return answer


def test_what_a_server_gave_before_it_died_is_kept_and_said(prometheus: Prometheus) -> None:
    with answering(dying(passing_on(prometheus.url), 6)) as server:
        history = read_server(ServerSettings(server.url, parallel=1), START, END, use_cache=False)
        gone = [each.form["time"] for each in server.asked("/api/v1/query")][6:]
    assert 0 < np.isfinite(history.frame.values).sum() < 6 * len(times()) - 12
    assert history.notes[0].startswith(f"not all of it was read: {server.url}: the connection")
    assert len(set(gone)) == 1, "nothing else is asked of a server that is gone"
    with (
        answering(dying(passing_on(prometheus.url), 0)) as server,
        pytest.raises(HistoryError, match=r"nothing could be read: .*the connection"),
    ):
        read_server(server.url, START, END, use_cache=False)


def test_a_deadline_ends_a_slow_reading_with_what_there_is(prometheus: Prometheus) -> None:
    upstream = passing_on(prometheus.url)
    over = threading.Event()
    seen = []

    def slow(request: Request) -> Reply:
        if request.path == "/api/v1/query":
            seen.append(request)
            if len(seen) > 6:
                over.wait(60)
        return upstream(request)

    with answering(slow) as server:
        began = time.monotonic()
        history = read_server(
            ServerSettings(server.url, parallel=1), START, END, use_cache=False, deadline_seconds=6
        )
        assert time.monotonic() - began < 30
        over.set()
    assert (
        history.notes[0]
        == "not all of it was read: 6 s were up; read it again to go on, or give it more time"
    )
    assert np.isfinite(history.frame.values).any()


def test_a_server_that_refuses_everything_is_given_up(prometheus: Prometheus) -> None:
    upstream = passing_on(prometheus.url)

    def refusing(request: Request) -> Reply:
        if request.path in {"/api/v1/query", "/api/v1/query_range"}:
            words = {"status": "error", "errorType": "execution", "error": "too much of everything"}
            return Reply(json.dumps(words).encode(), 422)
        return upstream(request)

    with answering(refusing) as server:
        with pytest.raises(
            HistoryError, match=r"refuses even little at a time: 422 .* \(too much of everything\)"
        ):
            read_server(server.url, START, END, use_cache=False)
        assert len(server.requests) < 100


def test_a_server_that_has_no_time_is_asked_once_more(prometheus: Prometheus) -> None:
    upstream = passing_on(prometheus.url)
    busy = []

    def sometimes(request: Request) -> Reply:
        if request.path == "/api/v1/query" and not busy:
            busy.append(request)
            return Reply(b"too many outstanding requests", 429, {"Retry-After": "0"})
        return upstream(request)

    with answering(sometimes) as server:
        check(read_server(server.url, START, END, use_cache=False).frame)


def test_too_many_series_are_counted_and_refused_before_they_are_read(prometheus: Prometheus) -> None:
    def a_million(request: Request) -> Reply:
        if request.path == "/api/v1/query_range":
            result = [{"metric": {"__name__": USAGE}, "values": [[START + DAY, "1000000"]]}]
            return Reply(
                json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
            )
        return passing_on(prometheus.url)(request)

    with answering(a_million) as server:
        with pytest.raises(HistoryError, match="1000000 series, more than 50000 at a time; narrow it"):
            read_server(server.url, START, END, use_cache=False)
        assert server.asked("/api/v1/query") == []
    with pytest.raises(HistoryError, match="values, more than 50000; read less time, a longer step"):
        read_server(prometheus.url, START, END, use_cache=False, most_values=50_000)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (
            Reply(b"<!DOCTYPE html><html><body>Welcome</body></html>"),
            "no Prometheus: it sent a page of HTML; is this",
        ),
        (Reply(b'{"hello": 1}'), r"no Prometheus: it sent '\{\"hello\": 1\}'; is this"),
        (Reply(b"[1, 2]"), "no Prometheus"),
        (Reply(b'{"status":"success","data":{"a":1}}'), "no Prometheus"),
        (Reply(b'{"status":"success","data":[1]}'), "no Prometheus"),
        (Reply(b""), "no Prometheus: it sent nothing; is this"),
        (Reply(b"\x00\xff\xfe"), "no Prometheus"),
        (Reply(b"not found", 404), "answered 404 Not Found; is this the URL"),
        (
            Reply(b"", 302, {"Location": "http://elsewhere/?token=x"}),
            r"points to http://elsewhere/\?\.\.\.; redirects",
        ),
        (Reply(b"", 500), "answered 500 Internal Server Error; look into the log"),
        (
            Reply(b'{"status":"error","errorType":"bad_data","error":"bad_matcher"}', 400),
            r"answered 400 Bad Request \(bad_matcher\)",
        ),
    ],
)
def test_what_is_no_prometheus_is_said(reply: Reply, problem: str) -> None:
    with answering(lambda _: reply) as server:
        with pytest.raises(HistoryError, match=problem) as error:
            read_server(server.url, START, END, use_cache=False)
        assert str(error.value).startswith(server.url)
        assert "token" not in str(error.value)
        assert "\n" not in str(error.value)


def test_ranges_and_urls_that_make_no_sense_are_refused_and_nothing_is_asked() -> None:
    for url, start, end, problem in (
        ("http://127.0.0.1:1", 10.0, 10.0, "an empty range, from 1970"),
        ("http://127.0.0.1:1", 10.0, 5.0, "an empty range"),
        ("http://127.0.0.1:1", 10.0, 1.796e12, "are these milliseconds?"),
        ("http://127.0.0.1:1", float("nan"), 10.0, "seconds since 1970 are wanted"),
        ("127.0.0.1:9090", 0.0, 10.0, "did you mean http://127.0.0.1:9090?"),
        ("http://me:secret@127.0.0.1:1", 0.0, 10.0, "must not carry a user or a password"),
        ("http://127.0.0.1:1/?a=b", 0.0, 10.0, "must not carry a query"),
        ("http://127.0.0.1:1", 0.0, 10.0, "refused: nothing listens there"),
    ):
        with pytest.raises(HistoryError) as error:
            read_server(url, start, end, use_cache=False)
        assert problem in str(error.value)
        assert "secret" not in str(error.value)


def test_a_range_without_anything_says_where_there_is_something(
    prometheus: Prometheus, raw_prometheus: Prometheus
) -> None:
    with pytest.raises(
        HistoryError, match=r"nothing to read from .* to .*; it holds them from 20\d\d-.*Z to 20"
    ):
        read_server(raw_prometheus.url, START - 90 * DAY, START - 80 * DAY, use_cache=False, now=LATER)
    with pytest.raises(HistoryError, match="has no thrashold_nowhere, among"):
        read_server(prometheus.url, START, END, names=["thrashold_nowhere"], use_cache=False)


def matrix(values: list[list[object]], **more: object) -> Reply:
    result = [{"metric": {"__name__": USAGE, "engine": "a"}, "values": values, **more}]
    return Reply(
        json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
    )


def odd(piece: Callable[[], Reply]) -> Answering:
    """A server with one series, whose pieces are answered so."""

    def answer(request: Request) -> Reply:
        if request.path == "/api/v1/label/__name__/values":
            return Reply(json.dumps({"status": "success", "data": [USAGE, "up"]}).encode())
        if request.path == "/api/v1/query_range":
            return matrix([[START + DAY, "1"]])
        return piece() if request.path == "/api/v1/query" else Reply(b"404 page not found", 404)

    return answer


def test_doubled_and_disordered_samples_and_those_of_other_times_are_said_and_put_right() -> None:
    at = [START + 60, START + 15, START + 30, START + 30, START + 45, START + 9 * DAY, START - 9 * DAY]
    values = [[when, str(place)] for place, when in enumerate(at)]
    with answering(odd(lambda: matrix(values, histograms=[[START, {"count": "1"}]]))) as server:
        history = read_server(server.url, START, START + DAY, use_cache=False)
    assert history.frame.times.tolist() == [START + 15, START + 30, START + 45, START + 60]
    assert history.frame.values[:, 0].tolist() == [1, 3, 4, 0]
    assert history.notes[:3] == (
        "native histograms were left out",
        "some samples came twice or out of order; of one time the last was taken",
        "2 samples of other times than were asked for were left out; did a clock jump?",
    )


def test_mixed_steps_and_a_single_sample_are_said() -> None:
    with answering(odd(lambda: matrix([[START + 15, "1"]]))) as server:
        history = read_server(server.url, START, START + DAY, use_cache=False)
    assert history.frame.values.tolist() == [[1.0]]
    assert "how often series come can't be told: taken as each 15 s" in history.notes
    values: list[list[object]] = [[START + 60 * place, "1"] for place in range(100)]
    with answering(odd(lambda: matrix(values))) as server:
        history = read_server(server.url, START, START + DAY, step_seconds=15, use_cache=False)
    assert history.notes[0].startswith("steps are mixed: 100% of the series come every 60 s, not every 15 s")


def test_an_answer_that_cant_be_read_is_said() -> None:
    with (
        answering(
            odd(lambda: Reply(b'{"status":"success","data":{"resultType":"vector","result":[]}}'))
        ) as server,
        pytest.raises(HistoryError, match="/api/v1/query sent what can't be read: a vector where a matrix"),
    ):
        read_server(server.url, START, START + DAY, use_cache=False)


def test_nothing_but_the_given_url_is_asked(prometheus: Prometheus, monkeypatch: pytest.MonkeyPatch) -> None:
    def proxy(_: Request) -> Reply:
        return Reply(b"")

    with answering(proxy) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.setenv("http_proxy", server.url)
        read_server(prometheus.url, START, START + 3600, use_cache=False)
        assert server.requests == []


def test_what_is_asked_is_shown(prometheus: Prometheus) -> None:
    with answering(passing_on(prometheus.url)) as server:
        read_server(server.url, START, START + 3600, use_cache=False)
        request = server.asked("/api/v1/query")[0]
    assert request.method == "POST", "selectors can be long"
    assert request.headers["user-agent"] == "thrashold"
    assert request.headers["accept-encoding"] == "identity", "packing takes longer than the loopback"
    assert request.form["query"].endswith("[3600001ms]")


def test_an_answer_larger_than_allowed_is_asked_for_in_parts(raw_prometheus: Prometheus) -> None:
    whole = read_server(raw_prometheus.url, START, END, use_cache=False)
    small = ServerSettings(raw_prometheus.url, max_body_bytes=100_000)
    parts = read_server(small, START, END, use_cache=False)
    assert np.array_equal(whole.frame.values, parts.frame.values, equal_nan=True)
    assert whole.notes == parts.notes


def test_a_limit_of_series_is_met_with_fewer_names_not_with_shorter_times(raw_prometheus: Prometheus) -> None:
    upstream = passing_on(raw_prometheus.url)

    def limited(request: Request) -> Reply:
        if request.path == "/api/v1/query" and "|" in request.form["query"]:
            words = "the query exceeded the maximum number of series (limit: 1 series)"
            error = {"status": "error", "errorType": "execution", "error": words}
            return Reply(json.dumps(error).encode(), 422)
        return upstream(request)

    with answering(limited) as server:
        history = read_server(server.url, START, END, names=RAW, use_cache=False)
        lengths = {each.form["query"].partition("[")[2] for each in server.asked("/api/v1/query")}
    assert len(history.frame.keys) == 2
    assert lengths == {f"{DAY * 1000}ms]", f"{DAY * 1000 + 1}ms]"}


def test_a_packed_answer_is_unpacked() -> None:
    values: list[list[object]] = [[START + STEP * place, str(place)] for place in range(100)]

    def packed() -> Reply:
        return Reply(gzip.compress(matrix(values).body), headers={"Content-Encoding": "gzip"})

    with answering(odd(packed)) as server:
        history = read_server(server.url, START, START + DAY, use_cache=False)
    assert history.frame.values[:, 0].tolist() == list(range(100))


def test_a_certificate_is_checked_against_the_given_authority(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with answering(odd(lambda: matrix([[START + STEP, "1"]])), context) as server:
        trusting = ServerSettings(server.url, tls=TlsSettings(ca_file=tmp_path / "ca.pem"))
        assert read_server(trusting, START, START + DAY, use_cache=False).frame.values.tolist() == [[1.0]]
        with pytest.raises(HistoryError, match="its certificate is not trusted"):
            read_server(server.url, START, START + DAY, use_cache=False)
    with pytest.raises(HistoryError, match=r"tls\.ca_file .* cannot be used"):
        read_server(
            ServerSettings(server.url, tls=TlsSettings(ca_file=tmp_path / "none.pem")), 0, 1, use_cache=False
        )


def test_blocks_that_promtool_made_are_read_as_well(tmp_path: Path) -> None:
    begin = START // 7200 * 7200
    row = {begin + 60 * place: float(place) for place in range(1, 300)}
    dump = tmp_path / "dump.om"
    dump.write_text(openmetrics({(USAGE, (("engine", "a"),)): row}))
    with serving(dump, tmp_path / "server") as server:
        frame = read_server(server.url, begin, begin + 6 * 3600, use_cache=False).frame
    assert frame.step_seconds == 60
    assert dict(zip(frame.times.tolist(), frame.column(Key(USAGE, (("engine", "a"),))), strict=True)) == row


def test_a_day_that_cant_be_had_costs_that_day(raw_prometheus: Prometheus) -> None:
    upstream = passing_on(raw_prometheus.url)

    def broken(request: Request) -> Reply:
        if request.path == "/api/v1/query" and float(request.form["time"]) > START + DAY:
            error = {"status": "error", "errorType": "internal", "error": "a block is corrupt"}
            return Reply(json.dumps(error).encode(), 500)
        return upstream(request)

    with answering(broken) as server:
        history = read_server(server.url, START, END, names=RAW, use_cache=False)
        good = [each for each in server.asked("/api/v1/query") if float(each.form["time"]) <= START + DAY]
        assert len(server.requests) < 100
    assert [each.form["query"].partition("[")[2] for each in good] == [f"{DAY * 1000 + 1}ms]"]
    assert history.frame.end == HOLE[0] + STEP
    assert np.isfinite(history.frame.values).all()
    assert history.notes[0].endswith(
        "refuses even little at a time: 500 Internal Server Error (a block is corrupt)"
    )
