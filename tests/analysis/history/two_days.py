"""Two days of two engines, as the servers of these tests know them, and what is to be read of that."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from analysis.frame import Frame, Key
from exporter.derive.blocks import KV_USAGE
from exporter.derive.preemption import PREEMPTIONS as PREEMPTED
from exporter.signal import PEAK_SUFFIX
from tests.support import remote_write
from tests.support.asked_server import Answering, Reply, Request
from tests.support.prometheus import Prometheus

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
