"""What a frame says of the sampler itself, and what it tells the pace."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from exporter.sampler.crew import Crew
from exporter.sampler.frame import HUNG_SECONDS
from exporter.sampler.frames import FrameMaker
from exporter.sampler.options import Options
from exporter.sampler.pace import PATIENCE_SECONDS, Pace


@dataclass
class Hand:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    crew: Crew
    pace: Pace
    hand: Hand
    maker: FrameMaker


@pytest.fixture
def bench() -> Bench:
    pace, hand = Pace(), Hand()
    crew = Crew(Options(), pace, lambda: None)  # it is never started
    return Bench(crew, pace, hand, FrameMaker(crew, pace, hand))


def test_seconds_inside_the_library_slow_the_fast_reads(bench: Bench) -> None:
    for second in range(1, PATIENCE_SECONDS + 1):
        assert bench.pace.factor == 1
        bench.hand.now += 1
        bench.crew.driver_seconds += 0.2
        own = bench.maker.next().own
        assert own is not None
        assert own.driver_seconds == pytest.approx(0.2 * second)
        assert (own.resident_bytes > 1e6, own.cpu_seconds > 0) == (True, True)
    assert bench.pace.factor == 2


def test_a_frame_out_of_turn_counts_as_no_second(bench: Bench) -> None:
    bench.crew.driver_seconds += 0.2
    for _ in range(10 * PATIENCE_SECONDS):
        bench.hand.now += 0.01
        bench.maker.next()
    assert bench.pace.factor == 1


def test_a_call_about_no_gpu_that_hangs_is_named_and_counted_once(bench: Bench) -> None:
    bench.crew.inside = ("looking which GPUs there are", bench.hand.now)
    for _ in range(round(HUNG_SECONDS)):
        bench.hand.now += 1
        assert bench.maker.next().hung == ()
    for _ in range(3):
        bench.hand.now += 1
        frame = bench.maker.next()
        assert frame.hung == (("", "looking which GPUs there are", 100.0),)
        assert frame.trouble is not None, "there is nothing else that is read"
        assert frame.errors_total == (("hung", 1.0),)
    bench.crew.inside = None
    assert bench.maker.next().hung == ()


def test_a_call_is_not_held_up_by_the_driver_while_the_sampler_itself_does_not_run(bench: Bench) -> None:
    bench.maker.next()
    bench.crew.inside = ("looking which GPUs there are", bench.hand.now)
    bench.hand.now += 100
    assert bench.maker.next().hung == ()
    for _ in range(6):
        bench.hand.now += 1
        frame = bench.maker.next()
    assert [each.group for each in frame.hung] == ["looking which GPUs there are"], "since it runs again"
