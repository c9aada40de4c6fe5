from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest

from drill.actions import (
    ChangeClients,
    ChangeGateway,
    Freeze,
    LeakBlocks,
    LoseGpu,
    NarrowLink,
    OtherTenant,
    Restart,
    SlowCollectives,
)
from drill.breaker import BreakerConfig
from drill.clients import AttemptOutcome, ClientConfig
from drill.fleet import Fleet
from drill.gateway_config import GatewayConfig, Routing
from drill.second import EngineState, Second
from drill.serving.config import EngineConfig, Generation
from drill.serving.content import Segment
from drill.serving.models import MODELS
from drill.serving.request import PreemptionMode
from drill.workload.arrivals import Arrival
from exporter.hardware import GPUS
from tests.drill.fleet.stories import arrival, brief, ended, fleet

ANSWERED, FAILED = AttemptOutcome.ANSWERED, AttemptOutcome.FAILED
LEAVING = ClientConfig(timeout_seconds=5.5, retries=0)
SWALLOWS = GatewayConfig(passes_disconnects=False)
BIG = EngineConfig(MODELS["llama-70b"], GPUS["h100"], tensor_parallel=8)


def orphans(seconds: list[Second]) -> list[int]:
    return [sum(engine.truth.orphans for engine in second.engines) for second in seconds]


def test_orphans_live_where_disconnects_are_swallowed_and_end_when_the_engine_is_done_with_them() -> None:
    seconds = list(fleet([arrival(0.0, output=10)], gateway=SWALLOWS, clients=LEAVING).run(12))
    assert orphans(seconds) == [0] * 5 + [1] * 4 + [0] * 3
    assert seconds[6].engines[0].truth.orphan_blocks == 3  # 4 tokens of the prompt, 6 computed of the answer
    assert seconds[6].engines[0].gauges is not None
    assert seconds[6].engines[0].gauges.running == 1
    assert seconds[6].gateway_gauges.downstream_rq_active == 0


def test_orphans_end_when_the_gateways_connection_does() -> None:
    gateway = replace(SWALLOWS, orphan_seconds=2.25)
    seconds = list(fleet([arrival(0.0, output=30)], gateway=gateway, clients=LEAVING).run(12))
    assert orphans(seconds) == [0] * 5 + [1] * 2 + [0] * 5
    assert seconds[-1].engines[0].gauges is not None
    assert seconds[-1].engines[0].gauges.used_blocks == 0


def test_an_engine_that_is_told_ends_it_with_the_iteration_under_way() -> None:
    seconds = list(
        fleet([arrival(0.25, output=10), arrival(0.25, output=12, content=5)], clients=LEAVING).run(12)
    )
    assert orphans(seconds) == [0] * 5 + [2] + [0] * 6


def test_a_retry_beside_its_orphan_makes_the_engine_hold_the_prompt_twice() -> None:
    again = ClientConfig(timeout_seconds=5.5, retries=1, backoff_seconds=1.0, jitter_ratio=0.0)
    engine = fleet([arrival(0.0, prompt=40, output=30)], gateway=SWALLOWS, clients=again)
    seconds = list(engine.run(9))
    gauges = seconds[-1].engines[0].gauges
    assert gauges is not None
    assert (gauges.running, seconds[-1].gateway_gauges.downstream_rq_active) == (2, 1)
    assert seconds[-1].engines[0].truth.orphan_blocks >= 10


def test_the_gateway_gives_up_by_itself_and_its_breaker_opens_on_an_engine_that_stands_still() -> None:
    gateway = GatewayConfig(timeout_seconds=3.0, breaker=BreakerConfig(2, 10.0), routing=Routing.ROUND_ROBIN)
    arrivals = [arrival(at / 2, output=1) for at in range(40)]
    seconds = list(fleet(arrivals, 2, gateway=gateway, plan=[(4.0, Freeze("e0", 100.0))]).run(22))
    # sent at 4 and 5, given up at 7 and 8; so are those of 6 and 7; the one that tries at 18 is at 21
    assert [second.gateway_gauges.breaker_open[0] for second in seconds].index(True) == 7
    assert seconds[-1].gateway.upstreams[0].rq_timeout == 5
    assert seconds[-1].gateway.upstreams[0].ejections == 2
    assert {each[4] for each in brief(seconds)} == {ANSWERED, FAILED}


def test_a_frozen_engine_goes_on_where_it_stood() -> None:
    plan = [(2.5, Freeze("e0", 10.0))]
    seconds = list(fleet([arrival(0.0, output=5)], plan=plan).run(20))
    assert brief(seconds) == [(1, 1, 0.0, 15.0, ANSWERED)]
    states = [second.engines[0].state for second in seconds]
    assert states == [EngineState.SERVING] * 2 + [EngineState.FROZEN] * 10 + [EngineState.SERVING] * 8
    assert not any(second.engines[0].results for second in seconds[2:12])
    assert seconds[2].actions == ("e0: frozen for 10 s",)
    gaps = [
        gap for second in seconds for result in second.engines[0].results for gap, _ in result.token_intervals
    ]
    assert sorted(gaps) == [1.0, 1.0, 1.0, 11.0]


def test_who_comes_and_leaves_while_an_engine_is_frozen_is_seen_when_it_goes_on() -> None:
    plan = [(0.5, Freeze("e0", 20.0))]
    seconds = list(fleet([arrival(1.0), arrival(18.0)], plan=plan, clients=LEAVING).run(30))
    assert orphans(seconds)[5:21] == [0] + [1] * 14 + [0]
    assert brief(seconds) == [(1, 1, 1.0, 6.5, AttemptOutcome.TIMED_OUT), (2, 1, 18.0, 23.5, ANSWERED)]


def test_a_drained_engine_gets_nothing_more_and_comes_back_with_other_settings() -> None:
    arrivals = [arrival(at / 2, output=4) for at in range(60)]
    plan = [(5.25, Restart("e1", {"max_batched_tokens": 32, "gpu_blocks": 51}))]
    seconds = list(fleet(arrivals, 2, plan=plan).run(40))
    states = [
        (state, len(list(row))) for state, row in groupby(second.engines[1].state for second in seconds)
    ]
    assert [state for state, _ in states] == ["serving", "draining", "starting", "serving"]
    assert states[0][1] == states[2][1] == 5
    drained = 5 + states[1][1]
    assert 6 <= drained <= 10
    assert all(each[4] is ANSWERED for each in brief(seconds))
    after = seconds[-1].engines[1]
    assert (after.life, after.config.max_batched_tokens) == (1, 32)
    assert drained + 5 <= after.started_seconds <= drained + 6
    assert after.gauges is not None
    assert after.gauges.usable_blocks == 50
    assert [second.engines[1].gauges is None for second in seconds].count(True) == 5
    assert sum(second.engines[1].received for second in seconds[6 : drained + 5]) == 0
    assert sum(second.engines[1].received for second in seconds[drained + 5 :]) > 0


def test_what_a_drain_leaves_when_its_time_is_up_fails() -> None:
    plan = [(2.0, Restart("e0", drain_seconds=3.0))]
    seconds = list(fleet([arrival(0.0, output=50)], plan=plan).run(12))
    assert brief(seconds) == [(1, 1, 0.0, 5.0, FAILED)]
    assert seconds[-1].gateway.upstreams[0].rq_rx_reset == 1
    assert seconds[-1].engines[0].state is EngineState.SERVING


def test_an_engine_whose_swap_pool_is_full_dies_with_all_it_has_and_is_started_again() -> None:
    arrivals = [
        arrival(0.0, prompt=16, output=20),
        arrival(0.1, prompt=16, output=20),
        arrival(10.0, output=1),
    ]
    built = fleet(
        arrivals, blocks=10, generation=Generation.V0, preemption=PreemptionMode.SWAP, swap_bytes_gpu=0.0
    )
    seconds = list(built.run(25))
    assert [each[4] for each in brief(seconds)][:2] == [FAILED, FAILED]
    states = [second.engines[0].state for second in seconds]
    died = states.index(EngineState.DEAD)
    assert [state is EngineState.DEAD for state in states[died : died + 6]] == [True] * 5 + [False]
    assert seconds[died].engines[0].gauges is None
    assert any(result.died for result in seconds[died].engines[0].results)
    assert seconds[-1].engines[0].life == 1


def test_a_lost_gpu_takes_its_engine_and_no_restart_brings_it_back() -> None:
    arrivals = [arrival(float(at), output=3) for at in range(20)]
    plan = [(5.5, LoseGpu("e0", 3)), (8.0, Restart("e0"))]
    seconds = list(fleet(arrivals, 2, plan=plan, gateway=GatewayConfig(routing=Routing.ROUND_ROBIN)).run(40))
    assert seconds[-1].engines[0].state is EngineState.DEAD
    assert seconds[-1].engines[0].gpus_lost == (3,)
    failed = [each for each in ended(seconds) if each.outcome is FAILED]
    assert failed
    assert {each.engine for each in failed} == {0}
    assert {each.ended_seconds for each in failed} == {5.5, 6.0}  # the gateway notices at the second's end


def test_until_the_gateway_notices_a_dead_engine_connections_to_it_fail() -> None:
    arrivals = [arrival(5.6 + at / 100, output=1) for at in range(4)]
    plan = [(5.5, LoseGpu("e0", 0))]
    seconds = list(fleet(arrivals, 2, plan=plan, gateway=GatewayConfig(routing=Routing.ROUND_ROBIN)).run(10))
    assert seconds[-1].gateway.upstreams[0].cx_connect_fail == 2
    assert [each[4] for each in brief(seconds)].count(ANSWERED) == 2


def test_leaked_blocks_stay_used_when_nothing_runs() -> None:
    seconds = list(fleet([arrival(0.0)], plan=[(2.5, LeakBlocks("e0", 30))]).run(10))
    gauges = seconds[-1].engines[0].gauges
    assert gauges is not None
    assert (gauges.running, gauges.used_blocks) == (0, 30)
    assert seconds[-1].engines[0].truth.leaked_blocks == 30


def test_a_leak_takes_no_more_than_is_free() -> None:
    seconds = list(fleet([arrival(0.0, prompt=40, output=3)], plan=[(0.5, LeakBlocks("e0", 1000))]).run(5))
    assert seconds[-1].engines[0].truth.leaked_blocks == 90


def test_the_gateway_is_clamped_at_its_time() -> None:
    arrivals = [arrival(at / 100, output=1) for at in range(1000)]
    plan = [(5.0, ChangeGateway({"rate_per_second": 20.0}))]
    seconds = list(fleet(arrivals, 4, plan=plan, gateway=GatewayConfig(rate_per_second=1500.0)).run(12))
    rejected = [sum(count for _, count in second.gateway.rejected) for second in seconds]
    assert rejected[4] == 0
    assert rejected[9] - rejected[5] == 4 * 80


def test_clients_change_their_habits_from_the_next_attempt_on() -> None:
    plan = [(2.0, ChangeClients({"timeout_seconds": 4.0}))]
    seconds = list(fleet([arrival(1.0, output=50), arrival(3.0, output=50)], plan=plan).run(20))
    assert brief(seconds) == [(2, 1, 3.0, 7.0, AttemptOutcome.TIMED_OUT)]


def test_an_unknown_engine_is_told_with_those_that_are_there() -> None:
    with pytest.raises(ValueError, match=r"no engine 'e7' in the fleet: there are e0, e1"):
        list(fleet([], 2, plan=[(1.0, Freeze("e7", 1.0))]).run(2))


def test_a_fleet_needs_an_engine_and_arrivals_in_order() -> None:
    with pytest.raises(ValueError, match="an engine at least"):
        Fleet({}, [])
    with pytest.raises(ValueError, match=r"arrives at 1\.0 s comes after one at 2\.0 s"):
        list(fleet([arrival(2.0), arrival(1.0)]).run(5))


def decoding(plan: list[tuple[float, object]], engine: EngineConfig = BIG) -> list[Second]:
    requests = [Arrival(0.0, (Segment(each, 2000),), 4000) for each in range(20)]
    return list(Fleet({"e0": engine}, requests, plan=plan, clients=ClientConfig(None)).run(20))  # type: ignore[arg-type]


def generated(seconds: list[Second]) -> int:
    return sum(result.generated_tokens for second in seconds[10:] for result in second.engines[0].results)


def test_slow_collectives_slow_the_engine_and_what_nvlink_carries() -> None:
    sound, slow = decoding([]), decoding([(8.0, SlowCollectives("e0", 10.0))])
    assert generated(slow) < 0.5 * generated(sound)
    busy, less = (sum(each.engines[0].activity.nvlink_bytes for each in run[10:]) for run in (sound, slow))
    assert less < 0.5 * busy
    assert (
        slow[15].engines[0].activity.collective_seconds > 2 * sound[15].engines[0].activity.collective_seconds
    )


def test_another_tenant_takes_the_link_and_shows_on_it_but_costs_no_engine_that_copies_nothing() -> None:
    sound, crowded = decoding([]), decoding([(8.25, OtherTenant("e0", 40e9)), (12.0, OtherTenant("e0", 0.0))])
    assert generated(crowded) == generated(sound)
    foreign = [second.engines[0].activity.foreign_bytes for second in crowded]
    assert foreign[7:14] == [0.0, 30e9, 40e9, 40e9, 40e9, 0.0, 0.0]


@pytest.mark.parametrize("trouble", [OtherTenant("e0", 57e9), NarrowLink("e0", 1)])
def test_an_engine_that_offloads_over_a_crowded_or_narrow_link_waits_for_its_blocks(trouble: object) -> None:
    # documents that take turns in a GPU too small for two of them come back from the tier below
    offloading = replace(BIG, gpu_blocks=1200, offload_bytes=200e9, max_batched_tokens=16384)
    arrivals = [Arrival(float(at), (Segment(at % 2, 16_000),), 8) for at in range(60)]

    def first_tokens(plan: list[tuple[float, object]]) -> float:
        seconds = list(Fleet({"e0": offloading}, arrivals, plan=plan, clients=ClientConfig(None)).run(60))  # type: ignore[arg-type]
        late = [each for each in ended(seconds) if each.started_seconds > 20]
        return sum((each.first_token_seconds or 0.0) - each.started_seconds for each in late) / len(late)

    assert first_tokens([(10.0, trouble)]) > 1.5 * first_tokens([])
