"""Whatever engines and GPUs tell or leave out: no derivation breaks, nothing is negative, nothing infinite."""

from __future__ import annotations

import math
from dataclasses import fields

from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.cycle import CycleSettings, initial, step
from exporter.derive.phenomenon import EngineFacts
from exporter.gpu_sample import (
    GpuHealth,
    GpuMemory,
    GpuSample,
    GpuUtilisation,
    NvLink,
    PcieLink,
    PcieTraffic,
)
from exporter.observation import Observation, SourceStatus
from exporter.sample import EngineSample, Histogram, RankSample
from exporter.signal import Kind
from exporter.snapshot import Snapshot
from tests.support.gpus import identity

BOUNDS = (1.0, 2.0, 5.0, math.inf)
HISTOGRAMS = {field.name for field in fields(RankSample) if "Histogram" in str(field.type)}
NUMBERS = {field.name for field in fields(RankSample) if str(field.type) == "float | None"} - {"started_at"}
RATIOS = {name for name in NUMBERS if name.endswith("_ratio")}

numbers = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 2.0, 1e12]), st.integers(0, 10**6).map(float))
ratios = st.one_of(st.none(), st.sampled_from([0.0, 1.0]), st.floats(0, 1))
histograms = st.one_of(
    st.none(),
    st.builds(
        lambda rises, total: Histogram(BOUNDS, tuple(float(sum(rises[: i + 1])) for i in range(4)), total),
        st.lists(st.integers(0, 9), min_size=4, max_size=4),
        st.one_of(st.none(), st.floats(0, 100)),
    ),
)
labelled = st.lists(
    st.tuples(st.sampled_from(["stop", "abort", "capacity"]), st.floats(0, 50)), max_size=2
).map(lambda pairs: tuple(dict(pairs).items()))


@st.composite
def rank_samples(draw: st.DrawFn, at: float, rank: str) -> RankSample:
    known = {name: draw(ratios if name in RATIOS else numbers) for name in sorted(NUMBERS)}
    known["block_tokens"] = draw(st.sampled_from([None, 1.0, 16.0]))
    return RankSample(
        at,
        rank,
        "m",
        **known,
        **{name: draw(histograms) for name in sorted(HISTOGRAMS)},
        waiting_by_reason=draw(labelled),
        finished_total=draw(labelled),
        started_at=draw(st.sampled_from([None, 100.0, 200.0])),
        swap_mode=draw(st.sampled_from([None, "swap", "offload"])),
        block_group_tokens=draw(st.sampled_from([(), (16.0,), (16.0, 64.0)])),
    )


@st.composite
def runs(draw: st.DrawFn) -> list[EngineSample]:
    at, samples = 1000.0, []
    for _ in range(draw(st.integers(1, 5))):
        at += draw(st.sampled_from([0.3, 1.0, 12.0, 31.0, 61.0, 301.0]))
        ranks = tuple(draw(rank_samples(at, name)) for name in draw(st.sampled_from(["0", "01", ""])))
        samples.append(
            EngineSample(
                at,
                "e",
                "vllm",
                ranks,
                http_ok_total=draw(numbers),
                started_at=draw(st.sampled_from([None, 1.0])),
            )
        )
    return samples


facts = st.builds(
    EngineFacts,
    kv_bytes_per_token=st.sampled_from([None, 512.0]),
    gpus_per_replica=st.sampled_from([None, 1, 8]),
)


@settings(max_examples=200, deadline=None)
@given(runs(), facts)
def test_no_sample_breaks_a_derivation(samples: list[EngineSample], told: EngineFacts) -> None:
    state = initial(CycleSettings({"e": told}))
    before: dict[tuple[object, tuple[str, ...]], float] = {}
    for sample in samples:
        status = SourceStatus("e", "engine", answering=True, last_at=sample.at, read_seconds=0.1)
        state, snapshot = step(state, sample.at, [Observation(status, sample)])
        assert snapshot.failures == ()
        keeps_the_rules(snapshot, before)


def keeps_the_rules(snapshot: Snapshot, before: dict[tuple[object, tuple[str, ...]], float]) -> None:
    """What holds of any snapshot after those whose totals are in ``before``."""
    places = [(value.signal, value.labels, value.is_peak) for value in snapshot.values]
    assert len(places) == len(set(places))
    for value in snapshot.values:
        name = value.signal.name
        assert math.isfinite(value.value), name
        assert value.value >= 0 or name == "kv_headroom_tokens", name
        assert len(value.labels) == len(value.signal.label_names), name
        if value.signal.kind is Kind.COUNTER:
            assert value.value >= before.get((value.signal, value.labels), 0.0), name
            before[value.signal, value.labels] = value.value


wild = st.one_of(
    st.none(),
    st.sampled_from([0.0, 1.0, 1e9, 9.2e18, -1.0, math.nan, math.inf]),
    st.integers(0, 10**12).map(float),
)
small = st.sampled_from([None, 0, 1, 4, 5, 8, 16, 255])


def counted(*names: str) -> st.SearchStrategy[tuple[tuple[str, float], ...]]:
    counts = st.one_of(st.sampled_from([0.0, 5.0, -3.0, math.nan]), st.floats(0, 1e6))
    pairs = st.lists(st.tuples(st.sampled_from(names), counts), max_size=3)
    return pairs.map(lambda found: tuple(dict(found).items()))


traffic = st.builds(
    PcieTraffic,
    st.sampled_from(["gpm", "counter", "dcgm", "window"]),
    *[wild] * 4,
    *[st.sampled_from([None, 0.0, 1.0, 7.0])] * 2,
)
healths = st.builds(
    GpuHealth,
    wild,
    wild,
    counted("replay", "fatal"),
    counted("corrected"),
    counted("pending", "failed"),
    counted("sw_thermal"),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, True, False]),
)


@st.composite
def gpu_samples(draw: st.DrawFn, at: float, index: int) -> GpuSample:
    xids = draw(st.lists(st.tuples(st.sampled_from([13, 79]), st.floats(0, 9)), max_size=2))
    sample = GpuSample(
        at,
        identity(index),
        up=draw(st.sampled_from([True, True, True, False])),
        reader_started_at=draw(st.sampled_from([1.0, 1.0, 2.0])),
        xids_total=tuple(dict(xids).items()),
        xid_last_at=draw(st.sampled_from([None, 5.0])),
        errors_total=draw(st.sampled_from([(), (("pcie", "timeout", 2.0),)])),
    )
    if not sample.up:
        return sample
    return sample._replace(
        memory=draw(st.one_of(st.none(), st.builds(GpuMemory, st.just(8e10), st.just(1e10), wild))),
        utilisation=draw(st.one_of(st.none(), st.builds(GpuUtilisation, wild, ratios, wild))),
        pcie=draw(st.one_of(st.none(), traffic)),
        link=draw(st.one_of(st.none(), st.builds(PcieLink, small, small, small, small))),
        nvlink=draw(st.one_of(st.none(), st.builds(NvLink, wild, wild, small, small, wild, wild, wild))),
        health=draw(st.one_of(st.none(), healths)),
    )


@st.composite
def node_runs(draw: st.DrawFn) -> list[tuple[float, EngineSample | None, list[GpuSample]]]:
    at, made = 1000.0, []
    for _ in range(draw(st.integers(1, 6))):
        at += draw(st.sampled_from([0.3, 1.0, 12.0, 31.0, 61.0]))
        gpus = [
            draw(gpu_samples(at, index))
            for index in draw(st.sampled_from(["01", "0", ""]).map(lambda s: map(int, s)))
        ]
        ranks = tuple(draw(rank_samples(at, name)) for name in draw(st.sampled_from(["0", "01"])))
        engine = EngineSample(at, "e", "vllm", ranks) if draw(st.booleans()) else None
        made.append((at, engine, gpus))
    return made


@settings(max_examples=100, deadline=None)
@given(node_runs())
def test_no_gpu_and_no_join_breaks_a_derivation(
    story: list[tuple[float, EngineSample | None, list[GpuSample]]],
) -> None:
    state = initial(CycleSettings({}))
    before: dict[tuple[object, tuple[str, ...]], float] = {}
    for at, engine, gpus in story:
        status = SourceStatus("e", "engine", answering=True, last_at=at, read_seconds=0.1)
        nvml = SourceStatus("nvml", "nvml", answering=True, last_at=at, read_seconds=0.1)
        observations = [Observation(status, engine), Observation(nvml, gpus=tuple(gpus))]
        state, snapshot = step(state, at, observations)
        assert snapshot.failures == ()
        keeps_the_rules(snapshot, before)


seconds_of_swap = st.lists(
    st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.sampled_from([1.0, 1.0, 1.0, 2.0])),
    min_size=62,
    max_size=90,
)


@settings(max_examples=30, deadline=None)
@given(seconds_of_swap, st.floats(0.0, 0.99))
def test_an_engine_s_own_swap_on_its_own_gpus_is_never_called_impossible(
    story: list[tuple[int, int, float]], phase: float
) -> None:
    """What it swaps in a second goes over PCIe in that second, and other traffic goes beside it."""
    state, at, swapped, carried = initial(CycleSettings({})), 1000.0, 0.0, 0.0
    for swap, other, pause in story:
        status = SourceStatus("e", "engine", answering=True, last_at=at, read_seconds=0.01)
        nvml = SourceStatus("nvml", "nvml", answering=True, last_at=at, read_seconds=0.01)
        rank = RankSample(at, "0", "m", swap_in_bytes_total=swapped, swap_out_bytes_total=0.0)
        rates = PcieTraffic("gpm", 0.0, carried + phase * (1.09 * swap + other), None, None, 0.0)
        gpu = GpuSample(at + phase * pause, identity(), pcie=rates)
        observed = [
            Observation(status, EngineSample(at, "e", "vllm", (rank,))),
            Observation(nvml, gpus=(gpu,)),
        ]
        state, snapshot = step(state, at + pause, observed)
        values = {value.signal.name: value.value for value in snapshot.values}
        assert values.get("pcie_swap_share_impossible", 0.0) == 0
        swapped, carried = swapped + swap, carried + 1.09 * swap + other
        at += pause


moves = st.lists(
    st.tuples(
        st.sampled_from([0.05, 0.3, 0.7, 1.0, 1.0, 1.0, 1.3, 5.0, 13.0]),
        st.sampled_from([0, 0, 1, 40, 400]),
        st.integers(0, 3),
        st.integers(0, 12),
    ),
    min_size=20,
    max_size=60,
)


@settings(max_examples=60)
@given(moves)
def test_totals_are_what_happened_however_the_reads_fall(story: list[tuple[float, int, int, int]]) -> None:
    at = start = 1000.0
    tokens = firsts = 0
    state = initial(CycleSettings({}))
    before: dict[tuple[object, tuple[str, ...]], float] = {}
    for pause, made, began, running in story:
        at += pause
        tokens, firsts = tokens + made, firsts + began
        seen = Histogram((1.0, math.inf), (float(firsts), float(firsts)))
        rank = RankSample(
            at,
            "0",
            "m",
            running=float(running),
            waiting=0.0,
            kv_usage_ratio=running / 12,
            generation_tokens_total=float(tokens),
            time_to_first_token=seen,
        )
        status = SourceStatus("e", "engine", answering=True, last_at=at, read_seconds=0.1)
        sample = EngineSample(at, "e", "vllm", (rank,))
        state, snapshot = step(state, at, [Observation(status, sample)])
        values = {
            (value.signal.name, *value.labels[3:]): value.value
            for value in snapshot.values
            if not value.is_peak
        }
        for value in snapshot.values:
            if value.signal.kind is Kind.COUNTER:
                assert value.value >= before.get((value.signal, value.labels), 0.0), value.signal.name
                before[value.signal, value.labels] = value.value
        assert values["decode_stall_seconds_total",] <= at - start
        assert values.get(("last_token_age_seconds",), 0.0) <= at - start
    _, made, began, _ = story[0]
    assert values["generation_tokens_total",] == tokens - made
    assert (
        sum(value.value for value in snapshot.values if value.signal.name == "slo_events_total")
        == firsts - began
    )
