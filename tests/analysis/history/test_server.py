"""What is read of a server, and how it is asked."""

from __future__ import annotations

import gzip
import json
import ssl
from pathlib import Path

import numpy as np
import pytest
import trustme

from analysis.frame import Key
from analysis.history.history import HistoryError
from analysis.history.server import read_server
from analysis.history.server_settings import ServerSettings
from exporter.connection_settings import BasicAuthSettings, TlsSettings
from tests.analysis.history.two_days import (
    DAY,
    END,
    ENGINES,
    HOLE,
    LATER,
    RAW,
    START,
    STEP,
    USAGE,
    check,
    fill,
    matrix,
    odd,
    series,
)
from tests.support import victoria_metrics
from tests.support.asked_server import Reply, Request, answering, passing_on
from tests.support.prometheus import Prometheus, openmetrics, serving

pytestmark = pytest.mark.long


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
