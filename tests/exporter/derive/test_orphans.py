"""Orphans by simulation: requests come, end and are abandoned; both sides are read at instants of their own."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.derive.orphans import HELD_SECONDS, ORPHANS_PHENOMENON, orphan_sequences
from exporter.derive.phenomenon import EngineFacts
from exporter.gateway_join import GatewayJoin
from exporter.sample import EngineSample
from exporter.window import Window
from tests.support.derive import engine, rank
from tests.support.gateways import gateway, outcomes


@dataclass(frozen=True, slots=True)
class Request:
    """One request: when it began, when the gateway was done with it, when the engine was."""

    begin: float
    gateway_end: float
    engine_end: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """What happened, seen by whoever reads it. The engine hears of a request ``late`` seconds after the gateway."""

    requests: Sequence[Request]
    late: float = 0.02

    def waited_for(self, at: float) -> float:
        return float(sum(each.begin <= at < each.gateway_end for each in self.requests))

    def sent(self, at: float) -> float:
        return float(sum(each.begin <= at for each in self.requests))

    def given_up(self, at: float) -> float:
        return float(
            sum(each.gateway_end <= at and each.engine_end > each.gateway_end for each in self.requests)
        )

    def held(self, at: float) -> float:
        return float(sum(each.begin + self.late <= at < each.engine_end for each in self.requests))

    def orphans(self, at: float) -> float:
        return float(sum(each.gateway_end <= at < each.engine_end for each in self.requests))


def load(
    chance: random.Random, seconds: float, per_second: float, mean_seconds: float, freed: float
) -> list[Request]:
    """Requests that come at random; the engine is done with each ``freed`` seconds after the gateway at most."""
    found, at = [], 0.0
    while (at := at + chance.expovariate(per_second)) < seconds:
        end = at + chance.expovariate(1 / mean_seconds)
        found.append(Request(at, end, end + chance.random() * freed - 0.01))
    return found


def told(  # noqa: PLR0913 -- how both are read
    fleet: Fleet,
    until: float,
    *,
    interval: float = 1.0,
    phase: float = 0.003,
    read: Callable[[float], float] | None = None,
    counts_given_up: bool = True,
) -> list[tuple[float, float | None]]:
    """What is said after each read of the gateway. ``phase`` is how long after the engine it is read.

    ``read`` says how long a read of the engine takes; its numbers are those of the end of the read.
    ``counts_given_up``: whether the gateway tells what it gave up, or no more than what it sent on.
    """
    engines: Window[EngineSample] = Window()
    gateways = Window()  # type: ignore[var-annotated]
    said, at, due = [], 0.0, 0.0
    while at < until:
        seconds = read(at) if read is not None else 0.01
        if at >= due:
            held = rank(at, running=fleet.held(at + seconds), kv_usage_ratio=0.5, blocks=100.0)
            engines = engines.appended(engine(at, held, read_seconds=seconds))
            due = at + seconds
        gateways = gateways.appended(
            gateway(
                at + phase,
                upstream_inflight=fleet.waited_for(at + phase),
                upstream_requests_total=fleet.sent(at + phase),
                given_up_total=fleet.given_up(at + phase) if counts_given_up else None,
            )
        )
        said.append((at + phase, orphan_sequences(GatewayJoin((gateways,), (engines,), told=True))))
        at += interval
    return said


@given(
    st.integers(0, 2**32),
    st.sampled_from([0.5, 2.0, 20.0]),
    st.sampled_from([0.3, 5.0, 30.0]),
    st.sampled_from([0.5, 1.0, 5.0]),
    st.one_of(st.just(0.003), st.floats(0.25, 0.75)),
)
@settings(max_examples=150, deadline=None)
def test_without_orphans_coming_and_going_is_none(
    seed: int, per_second: float, mean_seconds: float, interval: float, phase: float
) -> None:
    """Both are read on the same ticks, or the one between two reads of the other."""
    chance = random.Random(seed)  # noqa: S311 - repeatable on purpose, guards nothing
    # the engine is done a moment before the gateway, as it is when all goes well
    requests = [
        Request(each.begin, each.gateway_end, max(each.begin, each.gateway_end - 0.03))
        for each in load(chance, 30.0, per_second, mean_seconds, 0.0)
    ]
    for _, orphans in told(Fleet(requests), 30.0, interval=interval, phase=phase * interval):
        assert orphans in {None, 0.0}


@given(
    seed=st.integers(0, 2**32),
    per_second=st.sampled_from([0.5, 2.0, 8.0, 30.0]),
    freed=st.floats(0.05, 0.9),
    interval=st.sampled_from([0.5, 1.0]),
    phase=st.one_of(st.just(0.003), st.floats(0.25, 0.75)),
    counts_given_up=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_however_many_clients_leave_what_the_engine_frees_within_a_second_is_no_orphan(  # noqa: PLR0913
    *, seed: int, per_second: float, freed: float, interval: float, phase: float, counts_given_up: bool
) -> None:
    """Each read finds some that have just been given up, but never the same ones twice."""
    chance = random.Random(seed)  # noqa: S311 - repeatable on purpose, guards nothing
    requests = load(chance, 20.0, per_second, 2.0, freed)
    said = told(
        Fleet(requests), 20.0, interval=interval, phase=phase * interval, counts_given_up=counts_given_up
    )
    assert {orphans for _, orphans in said} <= {None, 0.0}


@pytest.mark.parametrize(("phase", "read_seconds"), [(0.08, 0.01), (0.0, 0.08), (0.04, 0.05)])
@pytest.mark.parametrize("per_second", [1.0, 3.0])
def test_reads_a_little_apart_find_what_comes_and_ends_between_them_hardly_ever(
    per_second: float, phase: float, read_seconds: float
) -> None:
    """Engine and gateway agree to the moment here: each request that comes or ends between the reads is off by one."""
    chance = random.Random(11)  # noqa: S311 - repeatable on purpose, guards nothing
    requests = [
        Request(each.begin, each.gateway_end, each.gateway_end)
        for each in load(chance, 500.0, per_second, 1.5, 0.0)
    ]
    said = told(Fleet(requests, late=0.0), 500.0, phase=phase, read=lambda _: read_seconds)
    assert sum(bool(orphans) for _, orphans in said) <= 0.002 * len(said)


def test_all_clients_that_leave_at_once_again_and_again_leave_no_orphans() -> None:
    """A gateway's time is up for a whole burst at the same moment; the engine takes 0.6 s to free it."""
    bursts = [Request(at - 1.4, at, at + 0.6) for second in range(30) for at in [second + 0.7] * 8]
    said = told(Fleet(bursts), 30.0)
    assert {orphans for _, orphans in said} == {None, 0.0}


@given(st.integers(0, 2**32), st.floats(0.0, 0.95), st.integers(1, 30), st.sampled_from([0.01, 0.3]))
@settings(max_examples=40, deadline=None)
def test_orphans_are_never_overstated_and_seen_within_three_seconds(
    seed: int, phase: float, many: int, read_seconds: float
) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable on purpose, guards nothing
    abandoned = 20.0 + chance.random()
    freed = abandoned + 10.0
    steady = [Request(0.0, 1e9, 1e9) for _ in range(10)]
    orphans = [Request(5.0, abandoned, freed) for _ in range(many)]
    fleet = Fleet([*steady, *orphans])
    seen = [
        (at, found)
        for at, found in told(fleet, 40.0, phase=phase, read=lambda _: read_seconds)
        if found is not None
    ]
    assert all(found in {0.0, many} for _, found in seen)
    first = min(at for at, found in seen if found)
    last = max(at for at, found in seen if found)
    assert abandoned < first <= abandoned + 3.0 + (0.0 if phase < 0.05 else phase)
    assert last <= freed + 2.0


@pytest.mark.parametrize("counts_given_up", [True, False])
def test_a_retry_storm_that_leaves_orphans_all_the_time_reads_about_as_many_as_there_are(
    *,
    counts_given_up: bool,
) -> None:
    """Each request is abandoned after 3 s and worked on for 20 s more."""
    requests = [Request(n / 4, n / 4 + 3.0, n / 4 + 23.0) for n in range(400)]
    fleet = Fleet(requests)
    said = told(fleet, 90.0, counts_given_up=counts_given_up)
    seen = [(at, found) for at, found in said if at > 40 and found is not None]
    assert len(seen) > 40
    for at, found in seen:
        assert 0.9 * fleet.orphans(at) <= found <= fleet.orphans(at) + 1


@pytest.mark.parametrize("stall", [2.0, 6.0, 14.0])
def test_a_read_that_the_engine_held_up_makes_no_orphans(stall: float) -> None:
    """While the engine answers nothing, requests end; its numbers are from somewhere within the read."""
    requests = [Request(0.0, 30.0 + n / 10, 30.0 + n / 10 - 0.03) for n in range(100)]

    def read(at: float) -> float:
        return stall if math.isclose(at, 30.0) else 0.01

    for _, found in told(Fleet(requests), 60.0, read=read):
        assert found in {None, 0.0}


def two(
    first: list[float],
    second: list[float],
    waited_for: list[float],
    backends: float | None = 2.0,
    **more: bool,
) -> GatewayJoin:
    windows = []
    for name, counts in (("e1", first), ("e2", second)):
        window: Window[EngineSample] = Window()
        for at, count in enumerate(counts):
            sample = EngineSample(
                float(at), name, "vllm", (rank(float(at), running=count, kv_usage_ratio=0.6, blocks=50.0),)
            )
            window = window.appended(sample)
        windows.append(window)
    gateways = Window()  # type: ignore[var-annotated]
    for at, count in enumerate(waited_for):
        gateways = gateways.appended(gateway(float(at), upstream_inflight=count, backends=backends))
    return GatewayJoin((gateways,), tuple(windows), **{"told": True, **more})


def points(join: GatewayJoin) -> dict[str, float]:
    _, found = ORPHANS_PHENOMENON.derive(join, EngineFacts(), None)
    return {point.signal.name: point.value for point in found}


def test_several_engines_are_taken_together_and_their_blocks_shared_out() -> None:
    said = points(two([10, 10, 10], [6, 6, 6], [12, 12, 12]))
    assert said == {"orphan_sequences": 4, "orphan_kv_ratio": pytest.approx(0.6 * 4 / 16)}


def test_with_nothing_in_flight_orphans_hold_nothing() -> None:
    assert points(two([0, 0, 0], [0, 0, 0], [0, 0, 0])) == {"orphan_sequences": 0, "orphan_kv_ratio": 0}


def test_backends_that_are_not_read_leave_it_absent() -> None:
    counts = ([5.0] * 3, [5.0] * 3, [5.0] * 3)
    assert points(two(*counts, backends=3.0)) == {}
    # one address of a service may stand for both, where settings say that both are behind it
    assert points(two(*counts, backends=1.0))["orphan_sequences"] == 5
    assert points(two(*counts, backends=1.0, told=False)) == {}
    assert points(two(*counts, backends=2.0, told=False))["orphan_sequences"] == 5
    assert points(two(*counts, backends=None))["orphan_sequences"] == 5


def test_all_gateways_before_the_same_engines_count() -> None:
    join = two([10, 10, 10], [6, 6, 6], [7, 7, 7])
    both = GatewayJoin((*join.gateways, *join.gateways), join.engines, told=True)
    assert points(both)["orphan_sequences"] == 2


def test_requests_that_make_several_sequences_each_leave_it_absent() -> None:
    gateways = two([9] * 3, [0] * 3, [3] * 3, backends=1.0).gateways
    window: Window[EngineSample] = Window()
    for at in range(3):
        ranks = rank(float(at), running=9.0, finished_total=(("stop", 900.0),))
        window = window.appended(engine(float(at), ranks, http_ok_total=300.0))
    assert points(GatewayJoin(gateways, (window,), told=True)) == {}


def test_an_engine_that_does_not_tell_what_runs_leaves_it_absent() -> None:
    join = two([5] * 3, [5] * 3, [5] * 3)
    window = Window((engine(2.0, rank(2.0, waiting=3.0)),))
    assert points(GatewayJoin(join.gateways, (*join.engines[:1], window), told=True)) == {}


def test_gauges_of_a_moment_ago_leave_it_absent_and_paused_sequences_count() -> None:
    join = two([5] * 3, [5] * 3, [5] * 3)
    for fields, orphans in (({"paused": 2.0}, 7.0), ({"gauges_hold_seconds": 30.0}, None)):
        window: Window[EngineSample] = Window()
        for at in range(3):
            window = window.appended(engine(float(at), rank(float(at), running=5.0, **fields)))
        said = points(GatewayJoin(join.gateways, (join.engines[0], window), told=True))
        assert said.get("orphan_sequences") == orphans


def test_one_read_alone_says_nothing() -> None:
    assert HELD_SECONDS < 1
    assert points(two([10], [6], [2])) == {}


def test_litellm_tells_what_is_in_flight_at_all() -> None:
    join = two([5] * 3, [5] * 3, [0] * 3)
    gateways = Window()  # type: ignore[var-annotated]
    for at in range(3):
        gateways = gateways.appended(gateway(float(at), inflight=7.0))
    assert points(GatewayJoin((gateways,), join.engines, told=True))["orphan_sequences"] == 3


@pytest.mark.parametrize("per_second", [1, 2, 5, 20])
@pytest.mark.parametrize("steady", [0, 20])
@pytest.mark.parametrize("counter", ["sent", "ended", None])
def test_an_engine_that_died_lends_its_last_numbers_to_nobody_while_others_come_to_the_next(
    per_second: int, steady: int, counter: str | None
) -> None:
    """The second engine is read for the last time at 10 s; from then on all that come go to the first one."""
    dies = 10.5
    first = Fleet(
        [Request(0.0, 1e9, 1e9)] * steady + [Request(dies + n / per_second, 1e9, 1e9) for n in range(1, 41)]
    )
    second = Fleet([Request(0.0, dies, dies)] * 20)
    whole = Fleet([*first.requests, *second.requests])
    windows: list[Window[EngineSample]] = [Window(), Window()]
    gateways = Window()  # type: ignore[var-annotated]
    for at in map(float, range(26)):
        for place, fleet in enumerate((first, second)):
            if place == 0 or at < dies:
                held = rank(at, running=fleet.held(at + 0.01))
                windows[place] = windows[place].appended(
                    EngineSample(at, f"e{place}", "vllm", (held,), read_seconds=0.01)
                )
        then = at + 0.003
        ended = outcomes(ok=float(sum(each.gateway_end <= then for each in whole.requests)))
        told = {"sent": {"upstream_requests_total": whole.sent(then)}, "ended": {"outcomes_total": ended}}
        gateways = gateways.appended(
            gateway(then, inflight=whole.waited_for(then), **told.get(counter or "", {}))
        )
        assert orphan_sequences(GatewayJoin((gateways,), tuple(windows), told=True)) in {None, 0.0}
