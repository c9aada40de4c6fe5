"""One truth in three places: the cycle over raw scrapes, the live ``/metrics``, and the recording's export.

A recording of a real engine is served over HTTP, scrape by scrape, to a sidecar made of the parts of
the real one, in a time that the recording tells.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import io
import struct
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter import own_signals, recorder_signals
from exporter.cycle import CycleSettings, initial, step
from exporter.derive.phenomenon import EngineFacts
from exporter.dialects.vllm import VllmDialect
from exporter.engine_settings import EngineSettings
from exporter.exposition import Reader
from exporter.live import LiveCycle
from exporter.observation import Observation, SourceStatus
from exporter.publication import Board
from exporter.recorder import Recorder
from exporter.recorder_export import export_openmetrics
from exporter.recorder_reader import Recording
from exporter.service import application, listening_socket, make_server
from exporter.signal import PEAK_SECONDS, PEAK_SUFFIX
from exporter.snapshot import Snapshot
from exporter.source_signals import SIGNAL_INFO, SOURCE_READ_SECONDS
from exporter.sources.engine import EngineSource
from exporter.window import LONGEST_GAP_SECONDS, MERGE_BELOW_SECONDS, QUICK_READ_SECONDS
from tests.exporter.golden import KV_BYTES_PER_TOKEN
from tests.support.captures import recording

ENGINE = "worker-1"
NAMES = ("vllm-0.32.0", "vllm-0.32.0-offload", "vllm-0.32.0-dp2-api2", "vllm-0.8.5-v0-swap")
SETTINGS = CycleSettings({ENGINE: EngineFacts(kv_bytes_per_token=KV_BYTES_PER_TOKEN)}, version="test")
OWN = {each.full_name for each in (*own_signals.SIGNALS, *recorder_signals.SIGNALS)}

Key = tuple[str, tuple[tuple[str, str], ...]]
Values = Mapping[Key, float]


@dataclass(slots=True)
class Played:
    """An engine's answer and the time it is; answering takes the time that it took."""

    body: bytes = b""
    now: float = 0.0
    takes: float = 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """Of each cycle of a sidecar's life: when its sample was, when it was itself, what ``/metrics`` said."""

    file: Path
    sampled: list[float] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    pages: list[Values] = field(default_factory=list)


@contextlib.contextmanager
def served(played: Played) -> Iterator[str]:
    class Page(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            played.now += played.takes
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(played.body)))
            self.end_headers()
            self.wfile.write(played.body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.asynccontextmanager
async def serving(board: Board) -> AsyncIterator[httpx.AsyncClient]:
    server = make_server(application(board))
    with listening_socket("127.0.0.1", 0) as listener:
        task = asyncio.ensure_future(server.serve(sockets=[listener]))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            yield client
        server.stop()
        await task


async def lived(name: str, file: Path) -> Run:
    """A sidecar's life over a recording."""
    run, played, board = Run(file), Played(), Board()
    recorder = Recorder(file)
    recorder.start()
    with served(played) as url:
        source = EngineSource(EngineSettings(url=url, name=ENGINE), lambda: played.now, 1.0)
        cycle = LiveCycle([source], step, initial(SETTINGS), lambda: played.now, board, recorder)
        async with serving(board) as client:
            for entry, body in recording(name).scrapes():
                played.body, played.now, played.takes = body, entry["t"], entry["ms"] / 1000
                await source.read_once()
                cycle.run_once()
                run.sampled.append(entry["t"])
                run.at.append(played.now)
                run.pages.append(scraped((await client.get("/metrics")).text))
                while recorder.status.written < cycle.cycles:
                    assert not recorder.dropped, recorder.status
                    await asyncio.sleep(0.001)
    assert recorder.close(30)
    return run


def scraped(text: str) -> Values:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_text(text)
        for sample in family.samples
    }


@pytest.fixture(scope="module", params=NAMES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return asyncio.run(lived(request.param, tmp_path_factory.mktemp("golden") / request.param))


@pytest.fixture(scope="module")
def exported(run: Run) -> list[Values]:
    """What the export says, cycle by cycle."""
    out = io.BytesIO()
    with Recording(run.file) as opened:
        export_openmetrics(opened, out)
    cycles: dict[float, dict[Key, float]] = {round(at, 3): {} for at in run.at}
    assert len(cycles) == len(run.at)
    for family in parse_openmetrics(out.getvalue().decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            cycles[float(sample.timestamp)][key] = sample.value
    return [cycles[round(at, 3)] for at in run.at]


def analysed(name: str) -> Iterator[Snapshot]:
    """The cycle over the raw scrapes, with nothing live about it."""
    dialect, state = VllmDialect(), initial(SETTINGS)
    reader = Reader(dialect.interpret)
    for entry, body in recording(name).scrapes():
        at = entry["t"]
        now = at + entry["ms"] / 1000
        sample = dialect.sample(reader.read(body), engine=ENGINE, at=at, read_seconds=now - at)
        status = SourceStatus(ENGINE, "engine", answering=True, last_at=at, read_seconds=now - at)
        state, snapshot = step(state, now, [Observation(status, sample)])
        yield snapshot


def named(snapshot: Snapshot) -> Values:
    return {
        (
            signal.full_name + PEAK_SUFFIX if is_peak else signal.full_name,
            tuple(sorted(zip(signal.label_names, labels, strict=True))),
        ): value
        for signal, labels, value, is_peak in snapshot.values
    }


def is_of_step(key: Key) -> bool:
    """Whether a value comes from the cycle, and not from the loop around it or its recorder."""
    name, labels = key
    return name not in OWN and not (name == SIGNAL_INFO.full_name and dict(labels)["signal"] in OWN)


def as_recorded(key: Key, value: float) -> float:
    return value if key[0].endswith("_total") else struct.unpack("<f", struct.pack("<f", value))[0]


def is_peak(key: Key) -> bool:
    return key[0].endswith(PEAK_SUFFIX)


def test_the_live_page_says_what_the_raw_scrapes_give(run: Run) -> None:
    snapshots = list(analysed(run.file.name))
    assert [snapshot.at for snapshot in snapshots] == run.at
    for snapshot, page in zip(snapshots, run.pages, strict=True):
        assert {key: value for key, value in page.items() if is_of_step(key)} == named(snapshot)


def test_the_export_says_what_the_live_page_said(run: Run, exported: list[Values]) -> None:
    values = 0
    for page, told in zip(run.pages, exported, strict=True):
        assert told == {key: as_recorded(key, value) for key, value in page.items() if not is_peak(key)}
        values += len(told)
    assert values > 60 * len(run.at)


def test_peaks_of_gauges_are_maxima_of_what_is_exported(run: Run, exported: list[Values]) -> None:
    compared = 0
    for place, page in enumerate(run.pages):
        for key, peak in page.items():
            base = (key[0].removesuffix(PEAK_SUFFIX), key[1])
            if is_peak(key) and not base[0].endswith("_per_second"):
                told = [exported[each] for each in trailing(run, place)]
                assert max(each[base] for each in told if base in each) == as_recorded(key, peak)
                compared += 1
    assert compared >= len(run.at)


def test_peaks_of_rates_follow_from_the_totals_that_are_exported(run: Run, exported: list[Values]) -> None:
    compared = 0
    for place, page in enumerate(run.pages):
        for key, peak in page.items():
            if is_peak(key) and key[0].endswith(f"_per_second{PEAK_SUFFIX}"):
                total = key[0].removesuffix(f"_per_second{PEAK_SUFFIX}") + "_total"
                assert fastest(run, exported, trailing(run, place), (total, key[1])) == pytest.approx(
                    peak, rel=1e-6
                )
                compared += 1
    assert (compared > 0) == run.file.name.endswith("offload")


def trailing(run: Run, place: int) -> list[int]:
    """The cycles whose samples are of the trailing minute."""
    newest = run.sampled[place]
    return [each for each in range(place + 1) if run.sampled[each] >= newest - PEAK_SECONDS]


def fastest(run: Run, exported: list[Values], minute: list[int], total: Key) -> float:
    rates, before = [0.0], minute[0]
    for after in minute[1:]:
        seconds = run.sampled[after] - run.sampled[before]
        if seconds >= MERGE_BELOW_SECONDS:
            if seconds <= LONGEST_GAP_SECONDS and total in exported[before]:
                read = exported[after][SOURCE_READ_SECONDS.full_name, (("source", ENGINE),)]
                late = read if read > QUICK_READ_SECONDS else 0.0
                rates.append((exported[after][total] - exported[before][total]) / (seconds + late))
            before = after
    return max(rates)
