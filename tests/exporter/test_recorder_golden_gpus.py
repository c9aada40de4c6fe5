"""One truth in three places for GPUs too: the cycle over their samples, the live page, and the recording's export."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from exporter.cycle import CycleSettings, initial, step
from exporter.gpu_sample import GpuSample
from exporter.live import LiveCycle
from exporter.observation import Observation, SourceStatus
from exporter.publication import Board
from exporter.recorder import Recorder
from exporter.recorder_export import export_openmetrics
from exporter.recorder_reader import Recording
from exporter.render import PLAIN
from exporter.snapshot import Snapshot
from tests.exporter.test_recorder_golden import Key, Values, as_recorded, is_of_step, is_peak, named, scraped
from tests.support.gpus import h100

SECONDS = 150
"""Into the third minute: a recording folds each one."""
START = 1_800_000_000.0
SETTINGS = CycleSettings(version="test")


def samples(second: int) -> tuple[GpuSample, ...]:
    """Two GPUs: bursts on the one, which wraps unseen once and reports an XID; the other is lost and comes back."""
    at = START + second
    moved = 1e9 * second + 20e9 * (second // 7)
    busy = h100(
        at, 0, bytes_in=moved, bytes_out=3 * moved, nvlink_bytes=7 * moved, sm_active=(second % 9) / 10
    )
    if busy.pcie is not None and second >= 50:
        busy = busy._replace(
            pcie=busy.pcie._replace(ambiguous_intervals_total=1.0),
            xids_total=((31, 1.0 + second // 60),),
            xid_last_at=START + 49.5,
            errors_total=(("memory", "timeout", 2.0),),
        )
    other = h100(at, 1, bytes_in=moved / 2)
    if 70 <= second < 90:
        other = GpuSample(at, other.identity, up=False, down_because="gpu_ill", reader_started_at=1.0)
    return (busy, other)


@dataclass(slots=True)
class Gpus:
    """A source that shows the second it is set to."""

    second: int = 0
    name: str = "nvml"

    def observe(self) -> Observation:
        at = START + self.second
        return Observation(SourceStatus(self.name, "nvml", True, at, 0.01), gpus=samples(self.second))

    async def run(self) -> None: ...

    async def read_once(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Life:
    """What ``/metrics`` said in each second, and what the recording's export says of it."""

    pages: list[Values]
    exported: list[Values]


async def recorded(file: Path) -> list[Values]:
    source, recorder, pages, board = Gpus(), Recorder(file), [], Board()
    recorder.start()
    cycle = LiveCycle(
        [source], step, initial(SETTINGS), lambda: START + source.second + 0.25, board, recorder
    )
    for second in range(SECONDS):
        source.second = second
        cycle.run_once()
        pages.append(scraped(board.newest.rendering.body(PLAIN).decode()))
        while recorder.status.written < cycle.cycles:
            assert not recorder.dropped, recorder.status
            await asyncio.sleep(0.001)
    assert recorder.close(30)
    return pages


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    file = tmp_path_factory.mktemp("golden") / "gpus"
    pages = asyncio.run(recorded(file))
    out = io.BytesIO()
    with Recording(file) as opened:
        export_openmetrics(opened, out)
    cycles: dict[float, dict[Key, float]] = {START + second + 0.25: {} for second in range(SECONDS)}
    for family in parse_openmetrics(out.getvalue().decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            cycles[float(sample.timestamp)][key] = sample.value
    return Life(pages, list(cycles.values()))


def derived() -> Iterator[Snapshot]:
    state, source = initial(SETTINGS), Gpus()
    for second in range(SECONDS):
        source.second = second
        state, snapshot = step(state, START + second + 0.25, [source.observe()])
        assert snapshot.failures == ()
        yield snapshot


def test_the_live_page_says_what_the_samples_give(life: Life) -> None:
    for snapshot, page in zip(derived(), life.pages, strict=True):
        assert {key: value for key, value in page.items() if is_of_step(key)} == named(snapshot)


def test_the_export_says_what_the_live_page_said(life: Life) -> None:
    seen = set()
    for page, told in zip(life.pages, life.exported, strict=True):
        assert told == {key: as_recorded(key, value) for key, value in page.items() if not is_peak(key)}
        seen |= {name.removeprefix("thrashold_") for name, _ in told}
    assert {
        "pcie_bytes_total",
        "pcie_bytes_per_second",
        "pcie_ambiguous_intervals_total",
        "nvlink_bytes_total",
        "gpu_up",
        "gpu_down_info",
        "gpu_xid_errors_total",
        "gpu_read_errors_total",
        "gpu_memory_used_bytes",
        "gpu_sm_active_ratio",
        "gpu_power_watts",
    } <= seen


def test_a_gpu_that_is_lost_is_a_gap_in_the_export_and_no_zero(life: Life) -> None:
    memory = {
        second: [key for key in told if key[0] == "thrashold_gpu_memory_used_bytes"]
        for second, told in enumerate(life.exported)
    }
    assert {second for second, keys in memory.items() if len(keys) < 2} == set(range(70, 90))
