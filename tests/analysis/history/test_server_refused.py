"""What can't be read of a server, what is odd in its answers, and what is said of both."""

from __future__ import annotations

import json

import pytest

from analysis.history.history import HistoryError
from analysis.history.server import read_server
from tests.analysis.history.two_days import DAY, END, LATER, START, USAGE, matrix, odd
from tests.support.asked_server import Reply, Request, answering, passing_on
from tests.support.prometheus import Prometheus

pytestmark = pytest.mark.long


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
