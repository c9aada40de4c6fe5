"""Threads that take turns at GPUs: one where all is well, and none that waits for another's slow call."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from exporter.sampler.shift import PATIENCE_SECONDS, Shift
from tests.exporter.sampler.sampling import until

EVERY_SECONDS = 0.02


@dataclass
class Gpu:
    """Due every 20 ms, in two turns; ``held`` keeps those who take one inside until it is cleared."""

    due_at: float = field(default_factory=time.monotonic)
    owes: bool = False
    takes_seconds: float = 0.0
    held: bool = False
    broken: bool = False
    taken_at: list[float] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    inside: int = 0
    most_inside: int = 0

    def turn(self) -> None:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.taken_at.append(time.monotonic())
        self.threads.add(threading.get_ident())
        time.sleep(self.takes_seconds)
        while self.held:
            time.sleep(0.001)
        self.inside -= 1
        if self.broken:
            raise ZeroDivisionError
        self.owes = not self.owes
        if not self.owes:
            self.due_at = max(self.due_at + EVERY_SECONDS, time.monotonic())

    def goes_on(self) -> None:
        """Wait until it was read a few times more."""
        enough = len(self.taken_at) + 6
        until(lambda: len(self.taken_at) >= enough, "it is not read")


@dataclass
class Bench:
    ending: threading.Event
    shift: Shift

    def assign(self, **gpus: Gpu) -> None:
        self.shift.assign({name: (gpu,) for name, gpu in gpus.items()})


@pytest.fixture
def bench() -> Iterator[Bench]:
    ending = threading.Event()
    bench = Bench(ending, Shift(ending))
    yield bench
    ending.set()
    until(lambda: not bench.shift.threads, "threads that don't end")


def test_one_thread_reads_all_as_long_as_none_is_slow(bench: Bench) -> None:
    gpus = [Gpu() for _ in range(8)]
    bench.assign(**{str(place): gpu for place, gpu in enumerate(gpus)})
    for gpu in gpus:
        gpu.goes_on()
    # a busy machine may hold up a thread in a turn, so that another takes over: then both have read all
    assert len(frozenset().union(*(gpu.threads for gpu in gpus))) <= len(gpus[0].threads) + 1
    until(lambda: len(bench.shift.threads) == 2, "one that reads and one that stands by")
    assert all(gpu.most_inside == 1 for gpu in gpus)


def test_bytes_of_all_are_counted_before_the_rest_of_any(bench: Bench) -> None:
    order: list[tuple[str, bool]] = []

    class Noted(Gpu):
        def turn(self) -> None:
            order.append((self.name, self.owes))
            super().turn()
            self.due_at += 3600 * (not self.owes)

        name = ""

    gpus = {name: Noted(due_at=time.monotonic() - 1) for name in "abc"}
    for name, gpu in gpus.items():
        gpu.name = name
    bench.assign(**gpus)
    until(lambda: len(order) == 6)
    assert order == [(name, owes) for owes in (False, True) for name in "abc"]


def test_a_call_that_hangs_delays_no_other_and_keeps_its_gpu_to_itself(bench: Bench) -> None:
    sick, well = Gpu(), Gpu()
    bench.assign(sick=sick, well=well)
    well.goes_on()
    sick.held = True
    until(lambda: sick.inside)
    before = len(sick.taken_at)
    for _ in range(3):
        well.goes_on()
    assert (len(sick.taken_at), sick.most_inside) == (before, 1)
    until(lambda: len(bench.shift.threads) == 3, "one that hangs, one that reads, one that stands by")
    sick.held = False
    sick.goes_on()
    well.goes_on()
    assert (sick.most_inside, well.most_inside) == (1, 1), "never two at once"
    until(lambda: len(bench.shift.threads) == 2, "those that are no longer needed end")


def test_gpus_that_all_hang_are_all_read_again(bench: Bench) -> None:
    gpus = [Gpu() for _ in range(5)]
    bench.assign(**{str(place): gpu for place, gpu in enumerate(gpus)})
    gpus[0].goes_on()
    for gpu in gpus:
        gpu.held = True
    until(lambda: all(gpu.inside for gpu in gpus), "each holds one thread")
    until(lambda: len(bench.shift.threads) == 6)
    for gpu in gpus:
        gpu.held = False
    for gpu in gpus:
        gpu.goes_on()
        assert gpu.most_inside == 1
    until(lambda: len(bench.shift.threads) == 2)


def test_a_gpu_whose_every_call_is_slow_is_read_as_fast_as_it_can_be(bench: Bench) -> None:
    slow = Gpu(takes_seconds=3 * PATIENCE_SECONDS)
    bench.assign(slow=slow)
    until(lambda: len(slow.taken_at) >= 20)
    gaps = sorted(after - before for before, after in zip(slow.taken_at, slow.taken_at[1:], strict=False))
    assert gaps[len(gaps) // 2] < 0.5, "nobody sleeps while it is free"
    assert slow.most_inside == 1


def test_slow_ones_and_quick_ones_together(bench: Bench) -> None:
    gpus = {"slow": Gpu(takes_seconds=0.1), "slower": Gpu(takes_seconds=0.2), "a": Gpu(), "b": Gpu()}
    bench.assign(**gpus)
    until(lambda: len(gpus["slower"].taken_at) >= 5)
    for name in "ab":
        assert len(gpus[name].taken_at) > 3 * len(gpus["slower"].taken_at)
    assert all(gpu.most_inside == 1 for gpu in gpus.values())


def test_a_bug_in_one_is_said_and_costs_no_other(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    broken, well = Gpu(broken=True), Gpu()
    bench.assign(broken=broken, well=well)
    for _ in range(3):
        well.goes_on()
    assert len(broken.taken_at) < 5, "it is left alone for a second"
    assert "a turn broke off in thrashold itself: ZeroDivisionError" in capfd.readouterr().err


def test_gpus_come_and_go(bench: Bench) -> None:
    old, new = Gpu(), Gpu()
    bench.assign(old=old)
    old.goes_on()
    bench.assign(new=new)
    new.goes_on()
    until(lambda: not old.inside)
    before = len(old.taken_at)
    new.goes_on()
    assert len(old.taken_at) == before
    bench.assign()
    bench.assign(new=new)
    new.goes_on()


def test_without_a_second_thread_the_first_reads_on_and_says_so_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    gpu = Gpu()
    start, started = threading.Thread.start, []

    def only_one(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", only_one)
    bench.assign(gpu=gpu)
    gpu.goes_on()
    gpu.goes_on()
    assert capfd.readouterr().err.count("no second thread") == 1
    monkeypatch.undo()
    until(lambda: len(bench.shift.threads) == 2)
