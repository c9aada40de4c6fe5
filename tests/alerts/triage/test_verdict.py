"""What explains what, what a second can't know, and what a sidecar knows of an engine that is silent."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.alert import Expression, Severity
from alerts.catalogue import ALERTS
from alerts.thresholds import THRESHOLDS
from alerts.triage.look import Envoy
from alerts.triage.next_steps import next_of, unknowns
from alerts.triage.rows import of_page, of_snapshot
from alerts.triage.steps.backpressure import limit_of
from alerts.triage.verdict import EXPLAINING, judged
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.blocks import KV_USAGE
from exporter.derive.gateway import INFO, REQUESTS, UPSTREAM_INFLIGHT
from exporter.derive.headroom import DEMAND, EXHAUSTION
from exporter.derive.inventory import ENGINE_GPU_INFO, GPU_DOWN_INFO, GPU_UP
from exporter.derive.orphans import ORPHAN_KV
from exporter.derive.preemption import PREEMPTION_RATE, PREEMPTIONS, THRASHING
from exporter.derive.stalls import FROZEN, TOKEN_AGE
from exporter.derive.swap import SWAP_BYTES_RATE, SWAPPED
from exporter.derive.traffic import SEQUENCES
from exporter.render import PLAIN, Rendering
from exporter.signal import Signal
from exporter.source_signals import SOURCE_AGE, SOURCE_UP
from tests.alerts.triage.looks import ENGINE, Labelled, alone, by_sidecar, verdict
from tests.support.gateways import gateway
from tests.support.replay import replayed

RANK = (ENGINE, "0", "m")


def of_rank(**told: float) -> dict[tuple[Signal, tuple[str, ...]], float]:
    """A rank's page: usage, queue, and whatever else is told by name."""
    signals = {
        "usage": (KV_USAGE, RANK),
        "waiting": (SEQUENCES, (*RANK, "waiting")),
        "running": (SEQUENCES, (*RANK, "running")),
        "demand": (DEMAND, RANK),
        "full_in": (EXHAUSTION, RANK),
        "thrashing": (THRASHING, RANK),
        "preempting": (PREEMPTION_RATE, RANK),
        "loads": (SWAP_BYTES_RATE, (*RANK, "in")),
        "swapped": (SWAPPED, RANK),
        "silent": (TOKEN_AGE, RANK),
        "frozen": (FROZEN, RANK),
        "preempted": (PREEMPTIONS, RANK),
    }
    return {signals[name]: value for name, value in told.items()}


def of_gateway(amplified: float, **ended: float) -> dict[tuple[Signal, tuple[str, ...]], float]:
    """A gateway's page."""
    told = {(AMPLIFICATION, ("envoy",)): amplified}
    return told | {(REQUESTS, ("envoy", outcome)): count for outcome, count in ended.items()}


FULL = of_rank(usage=0.99, waiting=40, running=30)
CASES: list[tuple[Labelled, Labelled, str]] = [
    ({}, of_rank(usage=0.3, running=8, waiting=0), "healthy"),
    ({}, FULL, "healthy"),  # a full pool alone is no fault
    ({}, FULL | of_rank(preempting=2.0), "overload"),
    ({}, FULL | of_rank(preempting=2.0, demand=1.7, thrashing=1), "recompute-thrash"),
    ({}, FULL | of_rank(preempting=2.0, thrashing=1, loads=1e9), "offload-thrash"),
    ({}, FULL | of_rank(preempting=2.0, thrashing=1, swapped=3), "swap-thrash"),
    # for half a minute a long prefill and a core that hangs look the same
    ({}, of_rank(usage=0.5, running=9, silent=12, frozen=0), "prefill-blocking?"),
    ({}, of_rank(usage=0.5, running=9, silent=33, frozen=1), "engine-frozen"),
    # a rate of which the page tells only the total
    (of_rank(preempted=10), FULL | of_rank(preempted=13), "overload"),
    (of_gateway(4, rejected=5), of_gateway(4, rejected=9) | of_rank(usage=0.2), "gateway-too-tight"),
    (of_gateway(4, overflow=5), of_gateway(4, overflow=9) | of_rank(usage=0.2), "gateway-breaker"),
    (of_gateway(4, client_left=5), of_gateway(4, client_left=9) | of_rank(usage=0.2), "retry-storm"),
    # engines that are busy are what a limit is for
    (of_gateway(4, rejected=5), of_gateway(4, rejected=9) | of_rank(usage=0.85), "healthy"),
    (of_gateway(1.4, rejected=5), of_gateway(1.4, rejected=9) | of_rank(usage=0.2), "healthy"),
    # nearly full, and nobody waits and nobody is preempted
    ({}, of_rank(usage=0.87, running=49, waiting=0, preempting=0.0, demand=1.03), "healthy"),
    ({}, of_rank(usage=0.87, running=49, waiting=0, preempting=0.07, demand=1.03, full_in=30), "healthy"),
    # and nobody is back in the queue of those who were preempted within the last half minute
    ({}, of_rank(usage=0.87, running=49, waiting=0, preempting=0.17, demand=1.01), "healthy"),
    ({}, of_rank(usage=0.97, running=49, waiting=0, preempting=0.5, demand=1.03), "overload"),
    ({}, of_rank(usage=0.87, running=49, waiting=1, preempting=0.0, demand=1.03), "overload"),
    ({}, of_rank(usage=0.87, running=49, demand=1.03), "overload"),  # who waits isn't told
    # clients come again because the engine thrashes
    (
        of_gateway(4, timeout=5),
        of_gateway(4, timeout=9) | FULL | of_rank(preempting=2.0, thrashing=1),
        "recompute-thrash",
    ),
]


@pytest.mark.parametrize(("then", "now", "expected"), CASES)
def test_what_a_page_says_has_one_verdict(then: Labelled, now: Labelled, expected: str) -> None:
    assert verdict(by_sidecar(then, now)) == expected


def test_what_may_come_is_told_beside_a_verdict_of_health() -> None:
    now = of_rank(usage=0.87, running=49, waiting=0, preempting=0.0, demand=1.03, full_in=30)
    told = judged(by_sidecar({}, now), THRESHOLDS)
    assert (told.finding, told.exit_code) == (None, 0)
    assert [each.alert.name for each in told.others] == ["KvDemandBeyondPool", "KvExhaustionNear"]


@given(running=st.integers(1, 2_000), usage=st.floats(0.5, 1.0), waiting=st.integers(0, 100))
def test_nobody_is_told_to_let_in_fewer_than_run_well(running: int, usage: float, waiting: int) -> None:
    pool = {"usage": usage, "running": running, "waiting": waiting}
    for well in ({"preempting": 0.0}, {"preempting": 0.5, "waiting": 0}):
        assert (limit_of(by_sidecar({}, of_rank(**{**pool, **well})), THRESHOLDS) or 0) >= running
    for trouble in ({"preempting": 0.5, "waiting": 1}, {"swapped": 1}, {"silent": 9}, {"thrashing": 1}):
        look = by_sidecar({}, of_rank(**{"preempting": 0.0, **pool, **trouble}))
        assert limit_of(look, THRESHOLDS) == max(1, int(0.8 * running / usage))


@pytest.mark.parametrize(("inflight", "expected"), [(30.0, "orphans"), (0.0, "healthy")])
def test_what_comes_past_an_idle_gateway_is_no_orphan(inflight: float, expected: str) -> None:
    gateway = {
        (ORPHAN_KV, ("envoy",)): 0.6,
        (UPSTREAM_INFLIGHT, ("envoy",)): inflight,
        (INFO, ("envoy", "envoy")): 1.0,
    }
    assert verdict(by_sidecar({}, of_rank(usage=0.6, running=30) | gateway)) == expected


def test_a_rate_limit_that_is_too_tight_is_lifted_and_a_breaker_of_what_fits_would_not_help() -> None:
    look = by_sidecar(of_gateway(4, rejected=5), of_gateway(4, rejected=9) | of_rank(usage=0.2))
    told = next_of(look, judged(look, THRESHOLDS), THRESHOLDS)
    assert told.commands == ('curl -sX POST "$ENVOY/runtime_modify?engines_limit_enforced=0"',)
    assert told.page == "docs/runbooks/GatewayTooTight.md"


SILENT = "http://worker-1/metrics: refused: nothing listens there; look whether the engine runs"
DOWN: Labelled = {(SOURCE_UP, (ENGINE,)): 0.0, (SOURCE_AGE, (ENGINE,)): 300.0}
LOST: Labelled = {(GPU_UP, ("GPU-1",)): 0.0, (GPU_DOWN_INFO, ("GPU-1", "gpu_lost")): 1.0}
HUNG: Labelled = {(GPU_UP, ("GPU-1",)): 0.0, (GPU_DOWN_INFO, ("GPU-1", "hung")): 1.0}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (DOWN, "engine-down"),
        ({**DOWN, (SOURCE_AGE, (ENGINE,)): 12.0}, "engine-down?"),
        ({**DOWN, **LOST}, "gpu-lost"),
        ({**DOWN, **HUNG}, "engine-down"),
        ({**DOWN, **LOST, (GPU_UP, ("GPU-2",)): 1.0}, "gpu-lost"),
    ],
)
def test_a_sidecar_knows_why_an_engine_is_silent(told: Labelled, expected: str) -> None:
    assert verdict(by_sidecar({}, told, failure=SILENT)) == expected


def test_a_gpu_of_a_neighbour_is_no_fault_of_this_engine() -> None:
    joined = {(ENGINE_GPU_INFO, (ENGINE, "GPU-2")): 1.0, (GPU_UP, ("GPU-2",)): 1.0}
    assert verdict(by_sidecar({}, {**of_rank(usage=0.3, running=1), **joined, **LOST})) == "healthy"


def test_each_alert_has_its_place_and_only_those_that_somebody_is_told_of() -> None:
    trees = {
        name
        for name, alert in ALERTS.items()
        if alert.severity is not Severity.INFO and not isinstance(alert.condition, Expression)
    }
    assert trees <= set(EXPLAINING) <= set(ALERTS)
    assert len(EXPLAINING) == len(set(EXPLAINING))


def test_a_page_says_what_its_snapshot_does() -> None:
    cycle = replayed("vllm-0.32.0")[60]
    page = of_page(Rendering(cycle.snapshot).body(PLAIN), cycle.at)
    assert page is not None
    assert dict(page.rows) == dict(of_snapshot(cycle.snapshot).rows)
    assert of_page(b"vllm:num_requests_running 1\n", 0.0) is None


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_what_a_counter_rose_by_is_not_known_where_it_began_anew(then: float, now: float) -> None:
    """A sidecar that was restarted amid a look counts from 0: that is no calm."""
    look = by_sidecar(of_rank(running=1, preempted=then), of_rank(running=1, preempted=now))
    told = look.subjects().ranks[0].told_of(PREEMPTION_RATE)
    if now < then:
        assert told is None
    else:
        assert told is not None
        assert told.value == now - then


def test_a_second_says_what_it_can_not_know_and_which_look_would() -> None:
    busy = [cycle for cycle in replayed("vllm-0.32.0") if cycle.phase == "overload"][20:60]
    pair = next(each for each in pairwise(busy) if each[1].at - each[0].at > 0.8)
    look = alone([each.sample for each in pair])
    assert {each.what for each in unknowns(look, THRESHOLDS)} >= {"whether it thrashes"}
    whole = alone([each.sample for each in busy])
    assert not {each.what for each in unknowns(whole, THRESHOLDS)} & {
        "whether it thrashes",
        "whether it stands still",
    }


def test_the_limit_for_envoy_is_what_fits_with_some_to_spare() -> None:
    busy = [cycle for cycle in replayed("vllm-0.32.0") if cycle.phase == "overload"][40:42]
    look = alone([each.sample for each in busy])
    (sample,) = busy[-1].sample.ranks
    prompts, answers = sample.request_prompt_tokens, sample.request_generation_tokens
    assert prompts is not None
    assert answers is not None
    by_lengths = (
        (sample.blocks or 0.0)
        * (sample.block_tokens or 0.0)
        / ((prompts.mean or 0.0) + (answers.mean or 0.0))
    )
    by_usage = (sample.running or 0.0) / (sample.kv_usage_ratio or 1.0)
    limit = limit_of(look, THRESHOLDS)
    assert limit == int(0.8 * min(by_lengths, by_usage))
    told = next_of(look, judged(look, THRESHOLDS), THRESHOLDS)
    assert told.commands[-1] == f'curl -sX POST "$ENVOY/runtime_modify?$KEY={limit}"'


def test_a_name_from_a_page_means_nothing_to_a_shell_and_several_envoys_share_the_limit() -> None:
    busy = [cycle for cycle in replayed("vllm-0.32.0") if cycle.phase == "overload"][40:42]
    look = alone([each.sample for each in busy])
    limit = limit_of(look, THRESHOLDS)
    assert limit is not None
    told = gateway(0.0, backends=4.0)
    envoys = (Envoy("http://a:9901", "$(reboot)\n;x"), Envoy("http://b:9901", "engines"))
    look = replace(look, gateways=(told, told), envoys=envoys)
    share = 4 * limit // 2
    assert next_of(look, judged(look, THRESHOLDS), THRESHOLDS).commands[-6:] == (
        "ENVOY=http://a:9901",
        "KEY=circuit_breakers.%24%28reboot%29%0A%3Bx.default.max_requests",
        f'curl -sX POST "$ENVOY/runtime_modify?$KEY={share}"',
        "ENVOY=http://b:9901",
        "KEY=circuit_breakers.engines.default.max_requests",
        f'curl -sX POST "$ENVOY/runtime_modify?$KEY={share}"',
    )
