"""Whatever is done to a fleet: every attempt ends once, all parts count alike, and the same fleet does the same."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from drill.actions import ChangeGateway, Freeze, LeakBlocks, LoseGpu, Restart
from drill.breaker import BreakerConfig
from drill.clients import AttemptOutcome, ClientConfig, Patience
from drill.fleet import Action, Fleet
from drill.gateway_config import Admission, GatewayConfig, Routing
from drill.second import Second
from drill.serving.config import Generation
from drill.serving.content import Segment
from drill.serving.request import Outcome, PreemptionMode
from drill.serving.step_time import MeasuredTimes
from drill.workload.arrivals import Arrival, Turn
from tests.drill.engines import config

TIMES = MeasuredTimes(0.05, 0.004, 0.006, 0.0001, 0.02)
SECONDS = 30


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    made = []
    at = 0.0
    for number in range(draw(st.integers(1, 25))):
        at += draw(st.floats(0, 0.8))
        shared = draw(st.sampled_from([(), (Segment(7, 12),)]))
        turns = tuple(
            Turn(draw(st.floats(0, 3)), (Segment(1000 + number * 10 + place, 5),), 6, draw(st.booleans()))
            for place in range(draw(st.integers(0, 3)))
        )
        own = Segment(100 + number, draw(st.integers(1, 60)))
        made.append(Arrival(at, (*shared, own), draw(st.integers(1, 60)), turns=turns))
    return made


GATEWAYS = st.builds(
    GatewayConfig,
    routing=st.sampled_from(list(Routing)),
    rate_per_second=st.none() | st.floats(0.5, 20),
    max_requests=st.none() | st.integers(1, 20),
    max_engine_requests=st.none() | st.integers(1, 10),
    timeout_seconds=st.none() | st.floats(1, 20),
    passes_disconnects=st.booleans(),
    breaker=st.none() | st.builds(BreakerConfig, st.integers(1, 3), st.floats(0.5, 10)),
    admission=st.none() | st.builds(Admission, st.integers(0, 60)),
)
CLIENTS = st.builds(
    ClientConfig,
    timeout_seconds=st.none() | st.floats(0.5, 10),
    patience=st.sampled_from(list(Patience)),
    retries=st.integers(0, 3),
    backoff_seconds=st.floats(0, 2),
    persistent=st.booleans(),
)
ENGINES = st.sampled_from(["e0", "e1", "e2"])
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Freeze, ENGINES, st.floats(0.5, 10)),
    st.builds(Restart, ENGINES, drain_seconds=st.floats(0, 5)),
    st.builds(LeakBlocks, ENGINES, st.integers(0, 10)),
    st.builds(LoseGpu, ENGINES, st.integers(0, 0)),
    st.builds(ChangeGateway, st.just({"passes_disconnects": True, "rate_per_second": 3.0})),
)
PLANS = st.lists(st.tuples(st.floats(0, 25), ACTIONS), max_size=4)
KINDS = st.sampled_from(
    [
        {},
        {"prefix_caching": True},
        {"generation": Generation.V0, "preemption": PreemptionMode.SWAP, "swap_bytes_gpu": 1e9},
        {"generation": Generation.V0, "preemption": PreemptionMode.SWAP, "swap_bytes_gpu": 0.0},
    ]
)


def run(
    load: list[Arrival],
    kind: dict[str, object],
    gateway: GatewayConfig,
    clients: ClientConfig,
    plan: list[tuple[float, Action]],
) -> tuple[Fleet, list[Second]]:
    engines = {f"e{index}": config(24, **dict(kind)) for index in range(3)}
    made = Fleet(
        engines, load, gateway=gateway, clients=clients, plan=plan, timer=TIMES, start_seconds=4.0, seed=3
    )
    return made, list(made.run(SECONDS))


@settings(max_examples=60, deadline=None)
@given(arrivals(), KINDS, GATEWAYS, CLIENTS, PLANS)
def test_every_attempt_ends_once_and_all_parts_count_alike(
    load: list[Arrival],
    kind: dict[str, object],
    gateway: GatewayConfig,
    clients: ClientConfig,
    plan: list[tuple[float, Action]],
) -> None:
    _, seconds = run(load, kind, gateway, clients, plan)
    ends = [each for second in seconds for each in second.ended]
    last = seconds[-1]
    totals, counts = last.clients, last.gateway

    assert len({each.attempt_id for each in ends}) == len(ends)
    assert len(ends) + totals.in_flight == totals.attempts == counts.downstream_rq_total
    how = Counter(each.outcome for each in ends)
    assert how[AttemptOutcome.ANSWERED] == totals.answered == counts.downstream_rq_2xx
    assert how[AttemptOutcome.TIMED_OUT] == totals.timed_out == counts.downstream_rq_rx_reset
    assert how[AttemptOutcome.REJECTED] == totals.rejected == sum(number for _, number in counts.rejected)
    assert totals.in_flight == last.gateway_gauges.downstream_rq_active
    for index, upstream in enumerate(counts.upstreams):
        # the gateway's own giving up is a 5xx and a reset at once
        done = (
            upstream.rq_2xx + upstream.rq_4xx + upstream.rq_5xx + upstream.rq_tx_reset - upstream.rq_timeout
        )
        assert upstream.rq_total == done + last.gateway_gauges.upstream_rq_active[index]
    by_request = Counter(each.request for each in ends if each.outcome is not AttemptOutcome.ANSWERED)
    assert max(by_request.values(), default=0) <= clients.retries + 1
    assert all(each.started_seconds <= each.ended_seconds for each in ends)
    assert all(before.ended_seconds <= after.ended_seconds for before, after in pairwise(ends))


@settings(max_examples=40, deadline=None)
@given(arrivals(), KINDS, GATEWAYS, CLIENTS, PLANS)
def test_what_engines_hold_is_in_flight_or_an_orphan(
    load: list[Arrival],
    kind: dict[str, object],
    gateway: GatewayConfig,
    clients: ClientConfig,
    plan: list[tuple[float, Action]],
) -> None:
    _, seconds = run(load, kind, gateway, clients, plan)
    received: Counter[str] = Counter()
    finished: Counter[str] = Counter()
    life: dict[str, int] = {}
    for second in seconds:
        for index, engine in enumerate(second.engines):
            if life.get(engine.name, 0) != engine.life:
                life[engine.name] = engine.life
                received[engine.name] = finished[engine.name] = 0
                continue  # what came before and after the start in this second can't be told apart
            received[engine.name] += engine.received
            finished[engine.name] += sum(len(result.finished) for result in engine.results)
            if engine.life == 0 and engine.gauges is not None:
                inside = received[engine.name] - finished[engine.name]
                active = second.gateway_gauges.upstream_rq_active[index]
                assert inside >= active
            truth = engine.truth
            assert truth.repeat_preemptions_30s <= truth.preemptions
            assert truth.tail_waste_tokens >= 0
            lost = [
                each for result in engine.results for each in result.finished if each.outcome is Outcome.LOST
            ]
            assert not lost or engine.gauges is None or engine.life


@settings(max_examples=15, deadline=None)
@given(arrivals(), KINDS, GATEWAYS, CLIENTS, PLANS)
def test_the_same_fleet_gives_the_same_seconds_bit_for_bit(
    load: list[Arrival],
    kind: dict[str, object],
    gateway: GatewayConfig,
    clients: ClientConfig,
    plan: list[tuple[float, Action]],
) -> None:
    first, again = (run(load, kind, gateway, clients, plan)[1] for _ in range(2))
    assert first == again


def test_another_seed_draws_other_backoffs() -> None:
    def starts(seed: int) -> list[float]:
        load = [Arrival(0.0, (Segment(1, 4),), 500)]
        made = Fleet({"e": config(200)}, load, clients=ClientConfig(2.0), timer=TIMES, seed=seed)
        return [each.started_seconds for second in made.run(20) for each in second.ended]

    assert starts(1) == starts(1)
    assert starts(1)[1:] != starts(2)[1:]
