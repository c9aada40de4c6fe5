"""What a server doesn't give at once: gone on with, kept, asked for in parts."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.history.history import HistoryError
from analysis.history.server import read_server
from analysis.history.server_settings import ServerSettings
from exporter.derive.blocks import KV_USAGE
from tests.analysis.history.two_days import DAY, END, HOLE, LATER, RAW, START, STEP, check, series, times
from tests.support.asked_server import Answering, Reply, Request, answering, passing_on
from tests.support.prometheus import Prometheus

pytestmark = pytest.mark.long


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
        # how many questions that takes depends on which of them are refused first, as many of them go out at once
        assert len(between.asked("/api/v1/query")) > asked
    files = list(tmp_path.glob("*/*.parquet"))
    kept: dict[Path, int] = defaultdict(int)
    for path in files:
        kept[path.parent] += pq.read_metadata(path).num_rows
    assert len(kept) == 2, "another tenant shares nothing"
    assert len(set(kept.values())) == 1, "and all of it was read for it"
    assert min(kept.values()) > 0
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
