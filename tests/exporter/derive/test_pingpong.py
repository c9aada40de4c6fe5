from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.derive.pingpong import BOUND_SECONDS, PINGPONG_PHENOMENON, repeat_share
from exporter.sample import Histogram, RankSample
from tests.support.derive import histogram, last, rank

BOUNDS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, math.inf)
"""vLLM's own, of request_num_preemptions."""


def of_requests(preemptions: list[int]) -> Histogram:
    counts = tuple(float(sum(count <= bound for count in preemptions)) for bound in BOUNDS)
    return Histogram(BOUNDS, counts, float(sum(preemptions)))


def true_share(preemptions: list[int]) -> float:
    return sum(max(0, count - 1) for count in preemptions) / sum(preemptions)


def test_repeats_from_the_histogram() -> None:
    # 4 requests with none, 3 with one, 2 with two, 1 with four preemptions: 5 repeats of 11
    assert repeat_share(of_requests([0] * 4 + [1] * 3 + [2] * 2 + [4])) == pytest.approx(5 / 11)


def test_no_preemption_no_share() -> None:
    assert repeat_share(of_requests([0, 0])) is None


@given(st.lists(st.integers(0, 40), min_size=1, max_size=100).filter(any))
def test_wide_buckets_never_tell_more_than_the_truth(preemptions: list[int]) -> None:
    told = repeat_share(of_requests(preemptions))
    assert told is not None
    assert 0 <= told <= true_share(preemptions) + 1e-12


@given(st.lists(st.integers(0, 5), min_size=1, max_size=100).filter(any))
def test_up_to_five_preemptions_a_request_it_is_exact(preemptions: list[int]) -> None:
    assert repeat_share(of_requests(preemptions)) == pytest.approx(true_share(preemptions))


def test_the_histogram_speaks_of_the_trailing_five_minutes() -> None:
    calm, storm = of_requests([1] * 100), of_requests([1] * 100 + [4] * 10)
    samples = [rank(float(at), request_preemptions=calm if at < 250 else storm) for at in range(0, 301, 5)]
    assert last(PINGPONG_PHENOMENON, samples)["pingpong_ratio{histogram}"] == pytest.approx(0.75)


def test_an_incident_before_the_sidecar_began_is_not_told_as_one_of_now() -> None:
    storm = of_requests([4] * 1000)
    samples = [rank(float(at), request_preemptions=storm) for at in range(10)]
    assert last(PINGPONG_PHENOMENON, samples) == {}
    after = of_requests([4] * 1000 + [1] * 18 + [2] * 2)
    said = last(PINGPONG_PHENOMENON, [*samples, rank(10.0, request_preemptions=after)])
    assert said["pingpong_ratio{histogram}"] == pytest.approx(2 / 22)


def test_a_few_preemptions_say_nothing_of_a_share() -> None:
    few = of_requests([1, 2, 3, 3])
    samples = [rank(0.0, request_preemptions=of_requests([])), rank(1.0, request_preemptions=few)]
    assert last(PINGPONG_PHENOMENON, samples) == {}


def test_one_that_was_thrown_out_time_and_again_counts_whole_where_it_ended_alone() -> None:
    """In one bucket with all others it would be one of more than 20; what came between two samples is itself."""
    ended = [0] * 30 + [141] + [0] * 30 + [35]
    samples = [rank(float(at), request_preemptions=of_requests(ended[:at])) for at in range(len(ended) + 1)]
    assert last(PINGPONG_PHENOMENON, samples)["pingpong_ratio{histogram}"] == pytest.approx(174 / 176)
    assert repeat_share(of_requests(ended)) == pytest.approx(114 / 176)


@given(st.lists(st.lists(st.integers(0, 200), max_size=6), min_size=1, max_size=40))
def test_sample_by_sample_it_is_never_above_the_truth(ended: list[list[int]]) -> None:
    so_far: list[int] = []
    samples = [rank(0.0, request_preemptions=of_requests([]))]
    for at, some in enumerate(ended, 1):
        so_far = [*so_far, *some]
        samples.append(rank(float(at), request_preemptions=of_requests(so_far)))
    told = last(PINGPONG_PHENOMENON, samples).get("pingpong_ratio{histogram}")
    if told is not None:
        assert (repeat_share(of_requests(so_far)) or 0.0) - 1e-12 <= told <= true_share(so_far) + 1e-12


def test_requests_that_ended_without_a_first_token_make_no_bound() -> None:
    ended = histogram((1.0, 1_000.0), (math.inf, 1_000.0))
    samples = [pool(float(at), 10.0 * at, 100.0, end_to_end_latency=ended) for at in range(31)]
    assert last(PINGPONG_PHENOMENON, samples)["pingpong_ratio{bound}"] == pytest.approx(1 - 36 / 300)


def test_bounds_that_are_no_whole_numbers_tell_no_more() -> None:
    halves = histogram((0.5, 0), (1.5, 10), (math.inf, 10), total=10.0)
    assert repeat_share(halves) == 0


def pool(at: float, preemptions: float, firsts: float, **fields: object) -> RankSample:
    known: dict[str, object] = {"running": 8.0, "waiting": 20.0}
    first = histogram((1.0, firsts), (math.inf, firsts))
    return rank(at, preemptions_total=preemptions, time_to_first_token=first, **{**known, **fields})


def test_more_preemptions_than_sequences_prove_repeats() -> None:
    # 28 in the engine at the start, 2 began, 8 run: at most 38 different ones for 300 preemptions
    samples = [pool(float(at), 10.0 * at, 2.0 * (at > 15)) for at in range(31)]
    assert last(PINGPONG_PHENOMENON, samples)["pingpong_ratio{bound}"] == pytest.approx(1 - 38 / 300)


def test_plain_contention_proves_nothing() -> None:
    samples = [pool(float(at), 3.0 * at, 2.0 * at) for at in range(31)]
    assert last(PINGPONG_PHENOMENON, samples)["pingpong_ratio{bound}"] == 0


def test_nothing_is_bound_without_preemptions_or_across_a_restart() -> None:
    assert last(PINGPONG_PHENOMENON, [pool(float(at), 0.0, 2.0 * at) for at in range(31)]) == {}
    samples = [pool(float(at), 10.0 * at, 0.0, generation_tokens_total=float(at % 20)) for at in range(31)]
    assert last(PINGPONG_PHENOMENON, samples) == {}


class Pool:
    """A made-up scheduler: requests come, run, are preempted, finish and are left, at random."""

    def __init__(self, seed: int, favourites: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 -- no secret hangs on it
        self.favourites = favourites
        self.waiting: list[int] = []
        self.running: list[int] = []
        self.begun: set[int] = set()
        self.events: list[tuple[float, int]] = []
        self.born = self.first_tokens = self.ended = 0

    def second(self, at: float) -> RankSample:
        dice = self.dice
        for _ in range(dice.randrange(4)):
            self.waiting.append(self.born)
            self.born += 1
        while self.waiting and len(self.running) < 6:
            request = self.waiting.pop(0)
            self.running.append(request)
            if request not in self.begun:
                self.begun.add(request)
                self.first_tokens += 1
        for _ in range(dice.randrange(6)):
            if len(self.running) > 1:
                victim = self.running.pop(-1 if self.favourites else dice.randrange(len(self.running)))
                self.events.append((at, victim))
                self.waiting.insert(0, victim)
                self.running.append(self.waiting.pop(0))
        if self.running and dice.random() < 0.5:
            gone = self.running.pop(dice.randrange(len(self.running)))
            self.ended += dice.random() < 0.7  # else its client left, which no engine counts
            self.begun.discard(gone)
        return pool(
            at,
            float(len(self.events)),
            float(self.first_tokens),
            running=float(len(self.running)),
            waiting=float(len(self.waiting)),
            end_to_end_latency=histogram((1.0, float(self.ended)), (math.inf, float(self.ended))),
        )


@given(st.integers(0, 10_000), st.integers(0, 1))
def test_the_bound_is_never_above_the_truth(seed: int, favourites: int) -> None:
    scheduler = Pool(seed, favourites)
    samples = [scheduler.second(float(at)) for at in range(60)]
    bound = last(PINGPONG_PHENOMENON, samples).get("pingpong_ratio{bound}")
    window = Counter(request for at, request in scheduler.events if at > 59 - BOUND_SECONDS)
    if bound is None:
        assert not window
    else:
        assert bound <= 1 - len(window) / window.total() + 1e-12


def test_that_made_up_scheduler_really_plays_ping_pong() -> None:
    scheduler = Pool(1, favourites=1)
    samples = [scheduler.second(float(at)) for at in range(60)]
    assert last(PINGPONG_PHENOMENON, samples)["pingpong_ratio{bound}"] > 0.1
