"""One GPU's reads: what fails costs its own group, by what the failure says about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from exporter.gpu_sample import (
    GpuHealth,
    GpuIdentity,
    GpuMemory,
    GpuProcess,
    GpuSample,
    GpuUtilisation,
    NvLink,
    PcieLink,
    PcieTraffic,
)
from exporter.sampler.backend import ByteCounters, ByteRates, ReadError, Remedy
from exporter.sampler.gpu_reader import MOST_SECONDS_DOWN, GpuReader, Terms
from exporter.sampler.pace import PATIENCE_SECONDS, Pace

Answer = TypeVar("Answer")

LOST = ReadError("gpu_lost", Remedy.DEVICE_DOWN, "lost")
NOT_SUPPORTED = ReadError("not_supported", Remedy.DROP, "not on this one")


@dataclass
class Hand:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Gpu:
    """A GPU that fails as told, by group; counts what it is asked for."""

    failing: dict[str, Exception] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    parts: tuple[tuple[str, str, float], ...] = ()
    identity = GpuIdentity("GPU-a", 0)

    def answer(self, name: str, value: Answer) -> Answer:
        self.asked[name] = self.asked.get(name, 0) + 1
        if name in self.failing:
            raise self.failing[name]
        return value

    def memory(self) -> GpuMemory:
        return self.answer("memory", GpuMemory(80e9, 5e9))

    def utilisation(self) -> GpuUtilisation:
        return self.answer("utilisation", GpuUtilisation(0.5))

    def byte_counters(self) -> ByteCounters:
        raise NOT_SUPPORTED

    def byte_rates(self) -> ByteRates:
        raise NOT_SUPPORTED

    def byte_window(self) -> ByteRates:
        raise NOT_SUPPORTED

    def link(self) -> PcieLink:
        return self.answer("link", PcieLink(5, 16, 5, 16))

    def nvlink(self) -> NvLink:
        return self.answer("nvlink", NvLink())

    def health(self) -> GpuHealth:
        return self.answer("health", GpuHealth())

    def processes(self) -> tuple[GpuProcess, ...]:
        return self.answer("processes", (GpuProcess(1),))

    def left_out(self) -> tuple[tuple[str, str, float], ...]:
        return self.parts


@dataclass
class Meter:
    """Counts its polls, at the times of a clock."""

    gpu: Gpu
    clock: Callable[[], float]
    interval_seconds: float | None = None
    polls: list[float] = field(default_factory=list)
    links: list[PcieLink | None] = field(default_factory=list)

    def told(self, link: PcieLink | None) -> None:
        self.links.append(link)

    def poll(self) -> None:
        self.gpu.answer("pcie", None)
        self.polls.append(self.clock())

    def lose(self) -> None:
        """Nothing to lose."""

    def traffic(self) -> PcieTraffic | None:
        return PcieTraffic("counter", float(len(self.polls)), 0.0)


class Bench:
    """A reader on a GPU and a clock that stands still but for its own turns."""

    def __init__(self, *, processes: bool = False, interval_seconds: float | None = None) -> None:
        self.gpu, self.hand, self.pace = Gpu(), Hand(), Pace()
        self.reopened: list[ReadError] = []
        self.meter = Meter(self.gpu, self.hand, interval_seconds)
        terms = Terms(self.pace, self.hand, self.reopened.append, processes=processes)
        self.reader = GpuReader(self.gpu, self.meter, terms, self.hand())

    def run(self, seconds: float) -> list[GpuSample]:
        """Take each turn when it is due; gives the samples made."""
        end = self.hand.now + seconds
        made = []
        while self.reader.due_at < end:
            self.hand.now = max(self.hand.now, self.reader.due_at)
            before = self.reader.sample
            self.reader.turn()
            if self.reader.sample is not before:
                made.append(self.reader.sample)
        self.hand.now = end
        return made


def test_each_group_is_read_in_its_own_time_and_a_sample_made_each_second() -> None:
    bench = Bench(processes=True)
    samples = bench.run(60)
    assert [sample.at for sample in samples] == [100.0 + second for second in range(60)]
    assert bench.gpu.asked == {
        "pcie": 60, "memory": 60, "utilisation": 60, "link": 12, "nvlink": 12, "health": 6, "processes": 2,
    }  # fmt: skip
    assert bench.meter.links == [PcieLink(5, 16, 5, 16)] * 12
    assert [sample.nvlink and sample.nvlink.read_at for sample in samples] == [
        100.0 + second // 5 * 5 for second in range(60)
    ], "told each second, read each five"
    assert all(sample.up and sample.memory == GpuMemory(80e9, 5e9) for sample in samples)
    assert samples[-1].pcie == PcieTraffic("counter", 60.0, 0.0), "that of the instant of the sample"


def test_processes_are_not_looked_at_unless_asked_for() -> None:
    bench = Bench()
    assert bench.run(60)[-1].processes is None
    assert "processes" not in bench.gpu.asked


def test_missed_ticks_are_skipped_and_not_caught_up_with() -> None:
    bench = Bench(interval_seconds=0.125)
    bench.run(1)
    assert len(bench.meter.polls) == 8
    bench.hand.now += 30.0625
    bench.run(1)
    late = [at for at in bench.meter.polls if at > 101]
    assert late == [131.0625, *(131.125 + tick / 8 for tick in range(8))][: len(late)]
    assert bench.gpu.asked["memory"] <= 3


def test_fast_reads_go_as_the_meter_wants_and_stretch_with_the_pace() -> None:
    bench = Bench(interval_seconds=0.125)
    bench.run(10)
    assert len(bench.meter.polls) == 80
    for _ in range(PATIENCE_SECONDS):
        bench.pace.told(1.0, 1.0)
    bench.run(10)
    assert len(bench.meter.polls) == 80 + 40
    assert bench.reader.fast_seconds == 0.25
    bench.meter.interval_seconds = None
    bench.run(10)
    assert len(bench.meter.polls) <= 120 + 11
    assert bench.reader.fast_seconds is None


def test_what_is_read_between_two_seconds_is_in_the_next_sample() -> None:
    bench = Bench(interval_seconds=0.125)
    samples = bench.run(10)
    assert [sample.pcie for sample in samples] == [
        PcieTraffic("counter", 1.0 + 8 * second, 0.0) for second in range(10)
    ]


def test_what_can_not_be_had_is_asked_for_once_and_is_no_error() -> None:
    bench = Bench()
    bench.gpu.failing = {"utilisation": NOT_SUPPORTED, "link": NOT_SUPPORTED, "pcie": NOT_SUPPORTED}
    sample = bench.run(60)[-1]
    assert (sample.utilisation, sample.link, sample.pcie) == (None, None, None)
    assert [bench.gpu.asked[name] for name in ("utilisation", "link", "pcie")] == [1, 1, 1]
    assert sample.errors_total == ()
    assert sample.memory is not None
    bench.gpu.failing = {"memory": ReadError("no_permission", Remedy.DROP, "")}
    assert bench.run(60)[-1].errors_total == (("memory", "no_permission", 1.0),), "but this one is, once"


def test_no_data_now_is_absent_now() -> None:
    bench = Bench()
    bench.run(1)
    bench.gpu.failing = {"utilisation": ReadError("not_ready", Remedy.SKIP, "")}
    assert [sample.utilisation for sample in bench.run(3)] == [None] * 3
    bench.gpu.failing = {}
    (sample,) = bench.run(1)
    assert (sample.utilisation, sample.errors_total) == (GpuUtilisation(0.5), ())


def test_an_odd_failure_is_counted_and_asked_again_and_old_values_vanish_after_three_periods() -> None:
    for error, reason in (
        (ReadError("timeout", Remedy.RETRY, ""), "timeout"),
        (ZeroDivisionError(), "internal"),
    ):
        bench = Bench()
        bench.run(1)
        bench.gpu.failing = {"memory": error, "link": error}
        samples = bench.run(20)
        assert [sample.memory is not None for sample in samples] == [True] * 3 + [False] * 17
        assert [sample.link is not None for sample in samples] == [True] * 15 + [False] * 5
        assert {each[:2]: each[2] for each in samples[-1].errors_total} == {
            ("memory", reason): 20.0,
            ("link", reason): 4.0,
        }
        assert all(sample.utilisation is not None for sample in samples)
        bench.gpu.failing = {}
        assert bench.run(1)[0].memory is not None


def test_a_total_of_bytes_is_not_told_again_as_that_of_a_later_second() -> None:
    for error in (ReadError("timeout", Remedy.RETRY, ""), ZeroDivisionError()):
        for interval in (None, 0.125):
            bench = Bench(interval_seconds=interval)
            bench.run(5)
            bench.gpu.failing = {"pcie": error}
            assert [sample.pcie for sample in bench.run(2)] == [None, None]
            bench.gpu.failing = {}
            (sample,) = bench.run(1)
            assert sample.pcie is not None
            assert all(each.pcie is not None for each in bench.run(10))


def test_a_gpu_that_is_down_stays_in_sight_and_is_asked_again_ever_more_rarely() -> None:
    bench = Bench()
    bench.run(1)
    bench.gpu.failing = dict.fromkeys(("pcie", "memory", "utilisation", "link", "nvlink", "health"), LOST)
    before = sum(bench.gpu.asked.values())
    samples = bench.run(600)
    asked = sum(bench.gpu.asked.values()) - before
    assert len(samples) == 600
    for sample in samples:
        assert (sample.up, sample.down_because, sample.memory, sample.link) == (False, "gpu_lost", None, None)
    assert asked == 6 + 9, "after 1, 2, 4, ... s, then each minute; one call each time"
    assert MOST_SECONDS_DOWN == 60
    bench.gpu.failing = {}
    samples = bench.run(120)
    assert samples[-1].up
    assert samples[-1].memory is not None
    assert {each[:2]: each[2] for each in samples[-1].errors_total} == {("pcie", "gpu_lost"): float(asked)}


def test_what_said_that_a_gpu_is_down_has_to_take_it_back() -> None:
    bench = Bench()
    bench.gpu.failing = {"health": LOST}
    assert not any(sample.up for sample in bench.run(30)), "though all else would answer"
    bench.gpu.failing = {"health": ReadError("timeout", Remedy.RETRY, "")}
    assert not bench.run(120)[-1].up, "no answer is no sign of life"
    bench.gpu.failing = {"health": NOT_SUPPORTED}
    assert bench.run(120)[-1].up, "that it can't is an answer"


@pytest.mark.parametrize(("group", "asked"), [("pcie", {"pcie": 1}), ("memory", {"pcie": 1, "memory": 1})])
def test_a_lost_driver_is_reported_and_nothing_more_is_asked_in_this_second(
    group: str, asked: dict[str, int]
) -> None:
    bench = Bench()
    bench.gpu.failing = {group: ReadError("driver_lost", Remedy.REOPEN, "gone")}
    (sample,) = bench.run(0.5)
    assert [error.reason for error in bench.reopened] == ["driver_lost"]
    assert sample.errors_total == ((group, "driver_lost", 1.0),), "the last frame is to tell of it"
    assert bench.gpu.asked == asked


def test_bytes_are_counted_first_and_the_rest_of_a_second_can_wait() -> None:
    bench = Bench(interval_seconds=0.05)
    bench.reader.turn()
    assert (bench.gpu.asked, bench.reader.owes, bench.reader.due_at) == ({"pcie": 1}, True, 100.0)
    bench.hand.now += 0.3
    bench.reader.turn()
    assert (bench.reader.owes, bench.gpu.asked["memory"]) == (False, 1)
    assert bench.reader.sample.at == 100.0, "when its bytes were counted"
    assert bench.reader.sample.pcie is not None, "and they are its own"
    bench.reader.turn()
    assert (bench.gpu.asked["pcie"], bench.gpu.asked["memory"], bench.reader.owes) == (2, 1, False)


def test_parts_that_fail_alone_are_counted_with_the_groups() -> None:
    bench = Bench()
    bench.gpu.parts = (("ecc", "timeout", 3.0), ("memory", "timeout", 1.0))
    bench.gpu.failing = {"memory": ReadError("timeout", Remedy.RETRY, "")}
    (sample,) = bench.run(1)
    assert set(sample.errors_total) == {("ecc", "timeout", 3.0), ("memory", "timeout", 2.0)}


def test_time_inside_the_library_is_summed_and_shown_while_it_lasts() -> None:
    bench = Bench()
    seen: list[tuple[str, float] | None] = []

    def slow() -> GpuMemory:
        bench.hand.now += 0.5
        seen.append(bench.reader.inside)
        return GpuMemory(80e9, 5e9)

    bench.gpu.memory = slow  # type: ignore[method-assign]
    bench.reader = GpuReader(
        bench.gpu, None, Terms(bench.pace, bench.hand, bench.reopened.append), bench.hand()
    )
    bench.run(0.1)
    assert seen == [("memory", 100.0)]
    assert bench.reader.inside is None
    assert bench.reader.driver_seconds == 0.5
