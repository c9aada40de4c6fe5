"""Actions that end by themselves, and those that meet each other."""

from __future__ import annotations

import pytest

from drill.actions import ChangeClients, ChangeGateway, Crash, LimitInFlight, NarrowLink, Restart
from drill.clients import ClientConfig
from drill.gateway_config import GatewayConfig
from drill.gateway_times import BOUNDS_MS
from drill.second import EngineState
from drill.serving.content import Segment
from drill.workload.arrivals import Arrival
from tests.drill.fleet.stories import fleet


def test_a_change_for_a_while_is_taken_back_and_said() -> None:
    plan = [(1.0, ChangeGateway({"rate_per_second": 2.0, "burst": 1.0}, 3.0))]
    played = fleet([], gateway=GatewayConfig(rate_per_second=50.0), plan=plan)
    seconds = list(played.run(6))
    told = [(each.seconds, words) for each in seconds for words in each.actions]
    assert told == [
        (1.0, "gateway: rate_per_second 2, burst 1"),
        (4.0, "gateway: rate_per_second 50, burst off"),
    ]
    rates = [each.gateway_gauges.config.rate_per_second for each in seconds]
    assert rates == [2.0] * 3 + [50.0] * 3


@pytest.mark.parametrize("lasting", [0.5, 2.0, 4.0])
def test_what_somebody_else_changes_for_good_stays_so(lasting: float) -> None:
    for first in (True, False):
        a_while, for_good = (
            (1.0, ChangeClients({"retries": 1}, 3.0)),
            (lasting, ChangeClients({"retries": 7})),
        )
        plan = [a_while, for_good] if first else [for_good, a_while]
        played = fleet([], plan=plan)
        list(played.run(6))
        assert played.clients.config.retries == 7


def test_a_link_that_became_narrow_while_its_engine_was_restarted_stays_narrow() -> None:
    for at in (0.5, 1.0, 2.0, 4.0, 8.0):
        plan = [
            (1.0, Restart("e0", {"max_batched_tokens": 32}, drain_seconds=1.0)),
            (at, NarrowLink("e0", 4)),
        ]
        last = list(fleet([], plan=plan, start_seconds=4.0).run(10))[-1].engines[0]
        assert (last.life, last.config.max_batched_tokens, last.config.gpu.pcie_width) == (1, 32, 4)


def test_a_crash_loses_what_is_in_the_engine_which_is_started_again() -> None:
    plan = [(2.0, Crash("e0")), (3.0, Crash("e0"))]
    arrivals = [Arrival(1.0, (Segment(1, 64),), 100_000)]
    played = fleet(
        arrivals, plan=plan, start_seconds=4.0, clients=ClientConfig(timeout_seconds=None, retries=0)
    )
    seconds = list(played.run(8))
    states = [each.engines[0].state for each in seconds]
    # who isn't there can't die again
    assert states == [EngineState.SERVING] + [EngineState.DEAD] * 4 + [EngineState.SERVING] * 3
    assert [each.engines[0].life for each in seconds][-1] == 1
    assert (seconds[-1].clients.failed, seconds[-1].clients.in_flight) == (1, 0)


def test_a_breaker_at_half_of_what_is_in_flight_is_lifted_again() -> None:
    arrivals = [Arrival(0.1 * number, (Segment(number, 64),), 100_000) for number in range(8)]
    plan = [(2.0, LimitInFlight(0.5, 3.0))]
    seconds = list(fleet(arrivals, plan=plan, clients=ClientConfig(timeout_seconds=None)).run(6))
    limits = [each.gateway_gauges.config.max_requests for each in seconds]
    assert limits == [None, 4, 4, 4, None, None]


def test_what_stands_before_the_limits_holds_up_whoever_comes() -> None:
    arrivals = [Arrival(0.5 * number, (Segment(number, 64),), 4) for number in range(8)]
    gateway = GatewayConfig(filter_seconds=2.0, rate_per_second=0.1, burst=1.0)
    played = fleet(arrivals, gateway=gateway, clients=ClientConfig(retries=0))
    seconds = list(played.run(12))
    ended = [each for second in seconds for each in second.ended]
    assert [round(each.ended_seconds - each.started_seconds, 6) for each in ended if each.engine is None] == [
        2.0
    ] * 7
    assert [each.gateway_gauges.downstream_rq_active for each in seconds][:2] == [3, 5]
    # merged each 5 s: five were turned away before the first time, and one is answered
    told = [each.gateway_gauges.request_times for each in seconds]
    assert [times.at_most[-1] for times in told] == [0] * 4 + [5] * 5 + [8] * 3
    assert told[-1].at_most[BOUNDS_MS.index(1_000.0)] == 0
    assert seconds[-1].gateway_gauges.upstream_times.at_most[-1] == 1
