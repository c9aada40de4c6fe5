"""Engines and GPUs through whole cycles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.cycle import CycleSettings, State, initial, step
from exporter.derive.phenomenon import EngineFacts
from exporter.gpu_sample import GpuIdentity, GpuMemory, GpuSample, PcieTraffic
from exporter.observation import Observation, SourceStatus
from exporter.sample import EngineSample
from exporter.snapshot import Snapshot
from tests.support.derive import engine, rank
from tests.support.gpus import h100, identity


def engine_at(at: float, swapped: float, name: str = "e", **fields: float) -> Observation:
    known = {"running": 4.0, "waiting": 0.0, "generation_tokens_total": 100.0 * at, **fields}
    ranks = rank(at, swap_in_bytes_total=swapped, swap_out_bytes_total=swapped, **known)
    sample: EngineSample = replace(engine(at, ranks), engine=name)
    return Observation(SourceStatus(name, "engine", answering=True, last_at=at, read_seconds=0.01), sample)


def gpus_at(at: float, *samples: GpuSample, name: str = "nvml") -> Observation:
    return Observation(SourceStatus(name, name, answering=True, last_at=at, read_seconds=0.01), gpus=samples)


def node(at: float, rate: float = 2e9, gpus: int = 8) -> Observation:
    return gpus_at(
        at,
        *(h100(at, index, bytes_in=rate * at, bytes_out=rate * at, nvlink_bytes=1e9 * at) for index in range(gpus)),
    )  # fmt: skip


def of(snapshot: Snapshot, name: str) -> dict[tuple[str, ...], float]:
    return {
        each.labels: each.value for each in snapshot.values if each.signal.name == name and not each.is_peak
    }


def lived(settings: CycleSettings, seconds: int = 70, *others: str) -> tuple[State, Snapshot]:
    """An engine that swaps 4 GB/s in each direction on eight GPUs of 2 GB/s, and others that swap as much."""
    state = initial(settings)
    for at in range(seconds):
        engines = [engine_at(float(at), 4e9 * at, name) for name in ("e", *others)]
        state, snapshot = step(state, at + 0.6, [*engines, node(at + 0.5)])
        assert snapshot.failures == ()
    return state, snapshot


def test_an_engine_on_eight_gpus() -> None:
    _, snapshot = lived(CycleSettings())
    assert of(snapshot, "pcie_swap_share_ratio")["e", "in"] == pytest.approx(4 * 1.09 / 16)
    assert of(snapshot, "pcie_unexplained_bytes_per_second")["e", "out"] == pytest.approx(16e9 - 4.36e9)
    assert len(of(snapshot, "gpu_starved_ratio")) == 8
    assert of(snapshot, "collective_bytes_per_second")["e",] == pytest.approx(8e9)
    assert len(of(snapshot, "pcie_bytes_total")) == 16
    assert len(of(snapshot, "gpu_up")) == 8


@pytest.mark.parametrize(
    "facts",
    [
        EngineFacts(),
        EngineFacts(gpus_per_replica=8),
        EngineFacts(kv_bytes_per_token=131072.0, gpus_per_replica=2),
    ],
)
def test_what_swap_explains_needs_no_setting_and_follows_none_but_the_gpus(facts: EngineFacts) -> None:
    _, snapshot = lived(CycleSettings({"e": facts}))
    assert of(snapshot, "pcie_swap_share_ratio") == {
        ("e", direction): pytest.approx(4 * 1.09 / 16) for direction in ("in", "out")
    }


def test_an_engine_on_some_gpus_is_compared_with_those_alone() -> None:
    _, snapshot = lived(CycleSettings({"e": EngineFacts(gpus=("0",))}))
    assert of(snapshot, "pcie_swap_share_ratio") == {}, "4.36 GB/s do not fit into 2"
    _, snapshot = lived(CycleSettings({"e": EngineFacts(gpus=("0", "1", "2", identity(3).uuid))}))
    assert of(snapshot, "pcie_swap_share_ratio")["e", "in"] == pytest.approx(4.36 / 8)


def test_two_engines_on_all_gpus_explain_traffic_together() -> None:
    _, snapshot = lived(CycleSettings(), 70, "f")
    assert of(snapshot, "pcie_swap_share_ratio")["f", "in"] == pytest.approx(4.36 / 16)
    for name in "ef":
        assert of(snapshot, "pcie_unexplained_bytes_per_second")[name, "in"] == pytest.approx(16e9 - 8.72e9)


def test_two_engines_on_gpus_of_their_own_have_nothing_to_do_with_each_other() -> None:
    halves = {"e": EngineFacts(gpus=("0", "1", "2", "3")), "f": EngineFacts(gpus=("4", "5", "6", "7"))}
    _, snapshot = lived(CycleSettings(halves), 70, "f")
    for name in "ef":
        assert of(snapshot, "pcie_unexplained_bytes_per_second")[name, "in"] == pytest.approx(8e9 - 4.36e9)


def test_of_engines_that_share_some_gpus_only_the_one_around_the_other_can_be_explained() -> None:
    settings = CycleSettings({"f": EngineFacts(gpus=("4", "5", "6", "7"))})
    _, snapshot = lived(settings, 70, "f")
    assert set(of(snapshot, "pcie_unexplained_bytes_per_second")) == {("e", "in"), ("e", "out")}
    assert of(snapshot, "pcie_swap_share_ratio")["f", "in"] == pytest.approx(4.36 / 8)


def test_another_engine_that_falls_silent_is_waited_for_and_then_gone() -> None:
    state, _ = lived(CycleSettings(), 70, "f")
    told = []
    for at in range(70, 460):
        state, snapshot = step(state, at + 0.6, [engine_at(float(at), 4e9 * at), node(at + 0.5)])
        told.append(("e", "in") in of(snapshot, "pcie_unexplained_bytes_per_second"))
    assert told[0], "what was seen until then still covers a minute"
    assert not any(told[20:320])
    assert all(told[340:])


def test_a_gpu_that_is_lost_takes_the_sums_along_and_leaves_the_others_alone() -> None:
    state, _ = lived(CycleSettings())
    for at in range(70, 75):
        samples = [
            *node(at + 0.5).gpus[:7],
            GpuSample(at + 0.5, identity(7), up=False, down_because="gpu_is_lost"),
        ]
        state, snapshot = step(state, at + 0.6, [engine_at(float(at), 4e9 * at), gpus_at(at + 0.5, *samples)])
    assert of(snapshot, "gpu_up")[identity(7).uuid,] == 0
    assert len(of(snapshot, "pcie_bytes_total")) == 14
    assert of(snapshot, "pcie_swap_share_ratio") == {}
    assert of(snapshot, "collective_bytes_per_second") == {}
    assert len(of(snapshot, "gpu_starved_ratio")) == 7


@pytest.mark.parametrize("named", ["8", "GPU-of-another-machine", "00000000:FF:00.0"])
def test_a_gpu_that_settings_name_and_nobody_tells_of_takes_the_sums_along_too(named: str) -> None:
    settings = CycleSettings({"e": EngineFacts(gpus=(*"01234567", named))})
    _, snapshot = lived(settings)
    assert len(of(snapshot, "engine_gpu_info")) == 8
    for name in ("pcie_swap_share_ratio", "pcie_unexplained_bytes_per_second", "collective_bytes_per_second"):
        assert of(snapshot, name) == {}, "what the ninth carried is not known"
    assert len(of(snapshot, "gpu_starved_ratio")) == 8


@pytest.mark.parametrize("all_are_named", [False, True])
def test_a_gpu_that_was_taken_out_is_after_an_hour_none_of_the_machine_s(
    all_are_named: bool,  # noqa: FBT001 - a parameter
) -> None:
    facts = EngineFacts(gpus=tuple("01234567") if all_are_named else None)
    state, _ = lived(CycleSettings({"e": facts}))
    told = []
    for at in (*range(70, 150), *range(3700, 3800)):
        seven = node(at + 0.5).gpus[:7]
        observations = [engine_at(float(at), 4e9 * at), gpus_at(at + 0.5, *seven)]
        state, snapshot = step(state, at + 0.6, observations)
        told.append(of(snapshot, "pcie_swap_share_ratio").get(("e", "in")))
    assert told[20:80] == [None] * 60
    assert told[-1] == (None if all_are_named else pytest.approx(4 * 1.09 / 14))


def test_gpus_that_vanish_take_their_values_along_and_count_on_when_they_are_back() -> None:
    state, snapshot = lived(CycleSettings())
    before = of(snapshot, "pcie_bytes_total")
    state, snapshot = step(state, 100.0, [engine_at(99.5, 4e9 * 99.5)])
    assert not any("gpu" in each.signal.name or "pcie" in each.signal.name for each in snapshot.values)
    _, snapshot = step(state, 101.0, [engine_at(100.5, 4e9 * 100.5), node(100.5)])
    after = of(snapshot, "pcie_bytes_total")
    assert after == pytest.approx({labels: value + 2e9 * 31 for labels, value in before.items()})


def test_a_gpu_that_appears_later_begins_at_zero() -> None:
    state, _ = lived(CycleSettings())
    _, snapshot = step(state, 70.6, [engine_at(70.0, 4e9 * 70), node(70.5, gpus=9)])
    assert of(snapshot, "pcie_bytes_total")[identity(8).uuid, "in"] == 0
    assert of(snapshot, "pcie_swap_share_ratio") == {}, "of the ninth nothing is known of the last minute"


def test_two_sources_of_one_gpu_are_one_gpu() -> None:
    bare = GpuSample(1.0, identity(), memory=GpuMemory(80e9, 60e9))
    more = GpuSample(0.9, identity(), pcie=PcieTraffic("dcgm", None, None, 1e9, 2e9))
    _, snapshot = step(initial(CycleSettings()), 1.1, [gpus_at(1.0, bare), gpus_at(0.9, more, name="dcgm")])
    assert of(snapshot, "pcie_source_info") == {(identity().uuid, "dcgm"): 1}
    assert of(snapshot, "gpu_memory_used_bytes") == {(identity().uuid,): 60e9}
    assert len(of(snapshot, "gpu_up")) == 1


def test_a_mig_instance_has_memory_and_no_pcie_so_that_an_engine_on_it_has_no_share() -> None:
    instance = GpuIdentity("MIG-1", 0, "NVIDIA H100 MIG 3g.40gb", parent_uuid=identity().uuid, gpu_instance=1)
    state = initial(CycleSettings({"e": EngineFacts(gpus=("MIG-1",))}))
    for at in range(70):
        own = GpuSample(at + 0.5, instance, memory=GpuMemory(40e9, 30e9))
        parent = h100(at + 0.5, bytes_in=2e9 * at)
        state, snapshot = step(
            state, at + 0.6, [engine_at(float(at), 1e9 * at), gpus_at(at + 0.5, parent, own)]
        )
    assert of(snapshot, "engine_gpu_info") == {("e", "MIG-1"): 1}
    assert of(snapshot, "gpu_memory_used_bytes")["MIG-1",] == 30e9
    assert set(of(snapshot, "pcie_bytes_total")) == {(identity().uuid, "in"), (identity().uuid, "out")}
    assert of(snapshot, "pcie_swap_share_ratio") == {}


def test_what_stays_the_same_is_kept_once() -> None:
    state, _ = lived(CycleSettings(), 5)
    window = state.gpus[identity().uuid].window
    assert all(sample.health is window.newest.health for sample in window.samples)
    assert len({sample.pcie for sample in window.samples}) == 5


def test_a_gpu_s_history_is_no_longer_than_what_is_asked_of_it() -> None:
    state, _ = lived(CycleSettings(), 120)
    assert len(state.gpus[identity().uuid].window.samples) <= 75
