"""Gateways through the cycle, beside engines, and through the command."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporter.cycle import CycleSettings, State, initial, step
from exporter.gateway_join import Behind
from exporter.gateway_sample import GatewaySample, KeyUse, Outcome
from exporter.observation import Observation, SourceStatus
from exporter.sample import EngineSample, Histogram
from tests.exporter.running import PAGE, call, engine
from tests.support.derive import rank
from tests.support.gateways import envoy_page, gateway, outcomes

Named = dict[str, float]
OUTCOMES = [outcome.value for outcome in Outcome]


def seen(sample: EngineSample | GatewaySample) -> Observation:
    name = sample.engine if isinstance(sample, EngineSample) else sample.gateway
    kind = "engine" if isinstance(sample, EngineSample) else "gateway"
    status = SourceStatus(name, kind, answering=True, last_at=sample.at, read_seconds=0.01)
    if isinstance(sample, EngineSample):
        return Observation(status, sample)
    return Observation(status, gateway=sample)


def engine_at(at: float, running: float, name: str = "e1") -> EngineSample:
    return EngineSample(at, name, "vllm", (rank(at, running=running, kv_usage_ratio=0.5, blocks=10.0),))


def gateway_at(at: float, upstream: float, name: str = "g1", **fields: object) -> GatewaySample:
    return gateway(at, name=name, inflight=upstream, upstream_inflight=upstream, **fields)


def cycled(
    told: CycleSettings, ticks: Iterable[Sequence[EngineSample | GatewaySample]], later: float = 0.25
) -> tuple[State, Named]:
    """What the last cycle says of gateways."""
    state, said = initial(told), Named()
    for samples in ticks:
        state, snapshot = step(
            state, max(sample.at for sample in samples) + later, [seen(each) for each in samples]
        )
        assert snapshot.failures == ()
        said = {}
        for value in snapshot.values:
            name = f"{value.signal.name}{{{','.join(value.labels)}}}"
            assert name not in said
            if value.signal.label_names[:1] == ("gateway",):
                said[name] = value.value
    return state, said


def behind(**engines: Sequence[str] | None) -> CycleSettings:
    return CycleSettings(behind=Behind(engines, ("e1", "e2")))


def test_orphans_stand_under_the_gateway_and_outlive_no_source() -> None:
    told = behind(g1=("e1",))
    ticks = [[engine_at(float(at), 9.0), gateway_at(float(at), 5.0)] for at in range(3)]
    _, said = cycled(told, ticks)
    assert said["orphan_sequences{g1}"] == 4
    assert said["orphan_kv_ratio{g1}"] == 0.5 * 4 / 9
    assert said["gateway_upstream_inflight{g1}"] == 5
    # the engine is stale: what it holds is not known any more
    _, said = cycled(told, [*ticks, [gateway_at(2.0, 5.0), engine_at(2.0, 9.0)]], later=16.0)
    assert said == {}


def test_two_gateways_before_two_engines_each_have_their_own() -> None:
    ticks = [
        [
            engine_at(float(at), 9.0),
            engine_at(float(at), 4.0, "e2"),
            gateway_at(float(at), 5.0),
            gateway_at(float(at), 4.0, "g2"),
        ]
        for at in range(3)
    ]
    _, said = cycled(behind(g1=("e1",), g2=("e2",)), ticks)
    assert (said["orphan_sequences{g1}"], said["orphan_sequences{g2}"]) == (4, 0)
    # both before both: one number, under the first
    _, said = cycled(behind(g1=None, g2=None), ticks)
    assert said["orphan_sequences{g1}"] == 13 - 9
    assert "orphan_sequences{g2}" not in said
    # e1 stands behind both, e2 behind one: whose its sequences are can't be told
    _, said = cycled(behind(g1=None, g2=("e1",)), ticks)
    assert not any("orphan" in name for name in said)


def test_an_engine_that_was_never_read_leaves_orphans_absent() -> None:
    ticks = [[engine_at(float(at), 9.0), gateway_at(float(at), 5.0)] for at in range(3)]
    _, said = cycled(behind(g1=None), ticks)
    assert not any("orphan" in name for name in said)
    assert said["gateway_inflight{g1}"] == 5


def test_a_gateway_with_no_engine_behind_it_has_signals_of_its_own() -> None:
    ticks = [[engine_at(float(at), 9.0), gateway_at(float(at), 5.0)] for at in range(3)]
    _, said = cycled(behind(g1=()), ticks)
    assert said["gateway_inflight{g1}"] == 5
    assert not any("orphan" in name for name in said)


def test_totals_hold_while_a_gateway_is_away() -> None:
    told = behind(g1=())
    ticks = [
        [gateway_at(float(at), 0.0, requests_total=float(n), outcomes_total=outcomes(ok=float(n)))]
        for at, n in ((0, 10), (1, 12), (40, 15))
    ]
    _, said = cycled(told, ticks)
    assert said["gateway_requests_total{g1,ok}"] == 5


def test_the_command_reads_gateways_that_a_flag_names() -> None:
    with engine(PAGE) as url, engine(envoy_page("whole/09-left")) as envoy:
        done = call("--engine", url, "--gateway", envoy, "--once")
        alone = call("--gateway", envoy, "--once")
    assert done.returncode == 0, done.stderr
    name = envoy.removeprefix("http://")
    assert f'thrashold_source_up{{source="{name}"}} 1.0' in done.stdout
    assert f'thrashold_gateway_info{{gateway="{name}",kind="envoy"}} 1.0' in done.stdout
    assert f'thrashold_gateway_requests_total{{gateway="{name}",outcome="rejected"}} 0.0' in done.stdout
    assert alone.returncode == 2
    assert "no engine to read" in alone.stderr


NUMBERS = st.one_of(st.none(), st.floats(0, 1e18), st.integers(0, 1 << 60).map(float))
FIELDS = (
    "inflight",
    "upstream_inflight",
    "pending",
    "requests_total",
    "retries_total",
    "upstream_requests_total",
    "turned_away_total",
    "backends",
    "keys_prompt_tokens_total",
)


@st.composite
def gateway_samples(draw: st.DrawFn, at: float) -> GatewaySample:
    """Any numbers a page can hold, in any combination."""
    bounds = (0.001, 0.1, float("inf"))
    histograms = st.one_of(
        st.none(),
        st.lists(st.floats(0, 1e9), min_size=3, max_size=3).map(lambda n: Histogram(bounds, tuple(n))),
    )
    keys = draw(
        st.lists(st.builds(KeyUse, st.sampled_from("abcother"), st.floats(0, 1e12), NUMBERS), max_size=4)
    )
    return GatewaySample(
        at,
        draw(st.sampled_from(["g1", "g2"])),
        "envoy",
        outcomes_total=outcomes(**draw(st.dictionaries(st.sampled_from(OUTCOMES), st.floats(0, 1e12)))),
        request_time=draw(histograms),
        upstream_time=draw(histograms),
        keys=tuple({use.key: use for use in keys}.values()),
        **{name: draw(NUMBERS) for name in FIELDS},
    )


@given(st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_numbers_of_a_gateway_break_a_derivation(data: st.DataObject) -> None:
    state = initial(behind(g1=None, g2=("e1", "e2")))
    at = 1000.0
    totals: Named = {}
    for _ in range(data.draw(st.integers(2, 8))):
        at += data.draw(st.sampled_from([0.5, 1.0, 20.0, 61.0]))
        seen_now = [data.draw(gateway_samples(at)), engine_at(at, 3.0), engine_at(at, 0.0, "e2")]
        state, snapshot = step(state, at + 0.2, [seen(each) for each in seen_now])
        assert snapshot.failures == ()
        for value in snapshot.values:
            assert math.isfinite(value.value)
            assert value.value >= 0
            name = f"{value.signal.name}{value.labels}"
            if value.signal.name == "orphan_kv_ratio":
                assert value.value <= 1
            if value.signal.name.startswith("gateway_") and value.signal.name.endswith("_total"):
                assert value.value >= totals.get(name, 0.0) or "tokens" in name or "prompts" in name
                totals[name] = value.value
