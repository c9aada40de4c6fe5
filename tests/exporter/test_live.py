"""The live loop: on schedule, one failure stays one failure, and a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from exporter.clock import anchored_clock
from exporter.live import LiveCycle, keep_running, read_all_once
from exporter.observation import Observation, SourceStatus
from exporter.own_signals import CYCLE_FAILURES, CYCLES, CYCLES_SKIPPED, SIGNALS
from exporter.publication import Board
from exporter.render import PLAIN, Format, Rendering
from exporter.sample import STALE_AFTER_SECONDS
from exporter.signal import Confidence, Kind, Scope, Signal
from exporter.snapshot import Failure, Snapshot, Value
from exporter.source_signals import SIGNAL_INFO
from tests.exporter.running import ROOT
from tests.support import own_time

SEEN = Signal("seen", Kind.GAUGE, Scope.SIDECAR, "Observations.", Confidence.MEASURED, "", ())


@dataclass(slots=True)
class Beacon:
    """A source that can be told to fail."""

    name: str = "beacon"
    broken: bool = False
    runs: int = 0
    third_run: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        self.runs += 1
        if self.runs == 3:
            self.third_run.set()
        if self.broken:
            raise RuntimeError("run")
        await asyncio.Event().wait()

    async def read_once(self) -> None:
        self.runs += 1
        if self.broken:
            raise RuntimeError("read")

    def observe(self) -> Observation:
        if self.broken:
            raise RuntimeError("observe")
        return Observation(SourceStatus(self.name, "beacon", answering=True, last_at=1.0, read_seconds=0.1))


@dataclass(slots=True)
class Hand:
    """A clock that stands where it is put."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def count(state: int, now: float, observations: Sequence[Observation]) -> tuple[int, Snapshot]:
    return state + 1, Snapshot(now, (Value(SEEN, (), float(len(observations)), is_peak=False),), ready=True)


def live(*sources: Beacon, clock: Hand | None = None) -> LiveCycle[int]:
    return LiveCycle(sources, count, 0, clock or Hand(), Board())


def shown(cycle: LiveCycle[int]) -> dict[str, float]:
    return {value.signal.name: value.value for value in cycle.board.newest.snapshot.values}


def test_a_cycle_publishes_values_statuses_and_its_own_numbers() -> None:
    cycle = live(Beacon("a"), Beacon("b"))
    cycle.run_once()
    assert shown(cycle)["seen"] == 2
    assert [status.name for status in cycle.board.newest.statuses] == ["a", "b"]
    assert {value.signal for value in cycle.board.newest.snapshot.values} == {SEEN, *SIGNALS, SIGNAL_INFO}


def test_it_says_how_sure_its_own_numbers_are() -> None:
    cycle = live()
    for _ in range(2):
        cycle.run_once()
    told = [value.labels for value in cycle.board.newest.snapshot.values if value.signal is SIGNAL_INFO]
    assert told == [(each.full_name, "measured", each.method) for each in SIGNALS]


def test_state_is_carried_from_cycle_to_cycle() -> None:
    cycle = live()
    for _ in range(3):
        cycle.run_once()
    assert cycle.state == 3
    assert shown(cycle)[CYCLES.name] == 3


def test_a_source_that_can_not_be_observed_costs_itself_alone(caplog: pytest.LogCaptureFixture) -> None:
    cycle = live(Beacon("a", broken=True), Beacon("b"))
    cycle.run_once()
    cycle.run_once()
    assert shown(cycle)["seen"] == 1
    assert shown(cycle)[CYCLE_FAILURES.name] == 2
    assert len([record for record in caplog.records if "source a" in record.getMessage()]) == 1


def test_a_cycle_that_raises_keeps_the_last_values_until_they_are_stale(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hand = Hand()
    cycle = live(Beacon(), clock=hand)
    cycle.run_once()

    def broken(_state: int, _now: float, _observations: Sequence[Observation]) -> tuple[int, Snapshot]:
        raise ZeroDivisionError

    cycle.step = broken
    hand.now += STALE_AFTER_SECONDS
    cycle.run_once()
    assert shown(cycle)["seen"] == 1
    assert shown(cycle)[CYCLE_FAILURES.name] == 1
    hand.now += 1
    cycle.run_once()
    assert "seen" not in shown(cycle)
    assert not cycle.board.newest.snapshot.ready
    assert shown(cycle)[CYCLE_FAILURES.name] == 2
    assert len(caplog.records) == 1, "the same failure is logged once a minute"
    assert "ZeroDivisionError" in caplog.text
    cycle.step = count
    cycle.run_once()
    assert shown(cycle)["seen"] == 1


def test_a_derivation_that_broke_off_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    cycle = live()
    cycle.step = lambda state, now, _: (
        state,
        Snapshot(now, (), ready=True, failures=(Failure("host:1", "pingpong", KeyError("x")),)),
    )
    cycle.run_once()
    cycle.run_once()
    assert caplog.text.count("pingpong of host:1 can't be derived") == 1


def test_cycles_keep_to_the_schedule_and_skip_what_was_missed() -> None:
    times: list[float] = []

    def slow_once(state: int, now: float, _: Sequence[Observation]) -> tuple[int, Snapshot]:
        loop = own_time.own_loop()
        times.append(loop.time())
        if state == 1:
            loop.busy(4.5)  # the machine is busy elsewhere
        return state + 1, Snapshot(now, (), ready=True)

    cycle = live()
    cycle.step = slow_once

    async def some() -> None:
        task = asyncio.create_task(cycle.run(1.0))
        await asyncio.sleep(9.5)
        task.cancel()

    own_time.run(some())
    # Late for the third tick, it catches up with one cycle; what was missed does not come, nor in a bunch.
    assert times == pytest.approx([1.25, 2.25, 6.75, 7.25, 8.25, 9.25])
    assert cycle.skipped == 3
    assert shown(cycle)[CYCLES_SKIPPED.name] == 3


def test_a_source_that_breaks_off_is_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("exporter.live._RESTART_SECONDS", 0.01)
    beacon = Beacon(broken=True)

    async def some() -> None:
        task = asyncio.create_task(keep_running(beacon))
        await asyncio.wait_for(beacon.third_run.wait(), 30)
        task.cancel()

    asyncio.run(some())
    assert "source beacon broke off" in caplog.text


def test_reading_once_reads_all_though_one_breaks_off() -> None:
    beacons = [Beacon("a", broken=True), Beacon("b")]
    asyncio.run(read_all_once(beacons))
    assert [beacon.runs for beacon in beacons] == [1, 1]


def test_the_clock_runs_on_when_the_wall_clock_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = anchored_clock()
    before = clock()
    assert before == pytest.approx(time.time(), abs=5)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= clock() - before < 5


def test_a_thread_that_hangs_does_not_hold_up_the_end() -> None:
    script = (
        "import asyncio, time\n"
        "from exporter.ending import leave, run_loop\n"
        "async def main():\n"
        "    asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)\n"
        "    await asyncio.sleep(0.1)\n"
        "run_loop(main())\n"
        "print('ended')\n"
        "leave(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (3, "ended\n"), done.stderr


def scraped_each_second(cycle: LiveCycle[int], wanted: Format, *, zipped: bool) -> None:
    now = time.monotonic()
    for ago in (2.8, 1.8, 0.8):
        cycle.board.scraped(wanted, now - ago, zipped=zipped)


def test_what_is_scraped_is_ready_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Format, bool]] = []
    body = Rendering.body

    def noted(self: Rendering, wanted: Format, *, zipped: bool = False) -> bytes:
        made.append((wanted, zipped))
        return body(self, wanted, zipped=zipped)

    cycle = live()
    scraped_each_second(cycle, PLAIN, zipped=False)
    monkeypatch.setattr(Rendering, "body", noted)
    asyncio.run(a_while(cycle))
    assert set(made) == {(PLAIN, False)}, "and nothing else"


def test_nothing_is_rendered_for_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr(Rendering, "body")
    cycle = live()
    asyncio.run(a_while(cycle))
    assert cycle.cycles > 2
    assert not caplog.records


def test_a_page_that_can_not_be_rendered_stops_no_cycle(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cycle = live()
    scraped_each_second(cycle, PLAIN, zipped=True)
    monkeypatch.delattr(Rendering, "body")
    asyncio.run(a_while(cycle))
    assert cycle.cycles > 2
    assert [record.getMessage()[:30] for record in caplog.records] == ["the page can't be rendered: At"]


async def a_while(cycle: LiveCycle[int]) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(cycle.run(0.1), 0.5)
