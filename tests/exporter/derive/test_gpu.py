"""Memory, load, health and NVLink of one GPU."""

from __future__ import annotations

import math

from exporter.derive.gpu_health import ERRORS, HEALTH
from exporter.derive.gpu_load import LOAD
from exporter.derive.gpu_memory import MEMORY
from exporter.derive.gpu_processes import PROCESSES
from exporter.derive.nvlink import NVLINK
from exporter.derive.phenomenon import EngineFacts
from exporter.gpu_sample import MOST_XIDS, GpuHealth, GpuMemory, GpuProcess, GpuSample, GpuUtilisation, NvLink
from exporter.window import Window
from tests.support.derive import gpu, last, run


def test_memory() -> None:
    assert last(MEMORY, [gpu(0, memory=GpuMemory(80e9, 60e9, 5e8))]) == {
        "gpu_memory_used_bytes": 60e9,
        "gpu_memory_reserved_bytes": 5e8,
        "gpu_memory_total_bytes": 80e9,
    }
    assert "gpu_memory_reserved_bytes" not in last(MEMORY, [gpu(0, memory=GpuMemory(80e9, 60e9))])
    assert last(MEMORY, [gpu(0)]) == {}


def test_processes_are_counted_and_those_whose_memory_is_told_stand_by_their_ids() -> None:
    seen = (GpuProcess(7, 60e9), GpuProcess(12, None), GpuProcess(9, 0.0))
    assert last(PROCESSES, [gpu(0, processes=seen)]) == {
        "gpu_processes": 3,
        "gpu_process_memory_bytes{7}": 60e9,
        "gpu_process_memory_bytes{9}": 0,
    }
    assert last(PROCESSES, [gpu(0, processes=())]) == {"gpu_processes": 0}
    assert last(PROCESSES, [gpu(0)]) == {}, "not asked for"


def test_of_many_processes_the_largest_are_told() -> None:
    said = last(PROCESSES, [gpu(0, processes=tuple(GpuProcess(pid, pid * 1e6) for pid in range(1, 200)))])
    assert said.pop("gpu_processes") == 199
    assert said == {f"gpu_process_memory_bytes{{{pid}}}": pid * 1e6 for pid in range(184, 200)}


def test_load_is_told_where_it_can_be_right() -> None:
    assert last(LOAD, [gpu(0, utilisation=GpuUtilisation(0.97, 0.5, 0.4))]) == {
        "gpu_busy_ratio": 0.97,
        "gpu_sm_active_ratio": 0.5,
        "gpu_memory_bandwidth_ratio": 0.4,
    }
    # what a broken driver was seen to say: 4294967295 %
    assert last(LOAD, [gpu(0, utilisation=GpuUtilisation(42949672.95, math.nan, None))]) == {}


def health(at: float, *, reader: float = 1.0, **fields: object) -> GpuSample:
    return gpu(at, health=GpuHealth(**fields), reader_started_at=reader)  # type: ignore[arg-type]


def test_the_driver_s_counters_begin_at_zero() -> None:
    samples = [
        health(
            float(at),
            pcie_errors_total=(("replay", 1000.0 + at), ("fatal", 0.0)),
            ecc_errors_total=(("corrected", 7.0),),
            throttle_seconds_total=(("sw_thermal", 50.0 + 0.5 * at),),
        )
        for at in range(5)
    ]
    said = run(ERRORS, samples)
    assert [values["gpu_pcie_errors_total{replay}"] for values in said] == [0, 1, 2, 3, 4]
    assert said[-1]["gpu_pcie_errors_total{fatal}"] == 0
    assert said[-1]["gpu_ecc_errors_total{corrected}"] == 0
    assert said[-1]["gpu_throttle_seconds_total{sw_thermal}"] == 2


def test_a_counter_that_could_not_be_read_at_first_brings_no_history() -> None:
    samples = [health(0.0), health(1.0, ecc_errors_total=(("corrected", 4000.0),))]
    samples.append(health(2.0, ecc_errors_total=(("corrected", 4002.0),)))
    said = run(ERRORS, samples)
    assert [values.get("gpu_ecc_errors_total{corrected}") for values in said] == [None, 0, 2]


def test_a_driver_that_was_loaded_anew_counts_on() -> None:
    counts = [10.0, 14.0, 1.0, 3.0]
    said = run(ERRORS, [health(float(at), pcie_errors_total=(("replay", n),)) for at, n in enumerate(counts)])
    assert [values["gpu_pcie_errors_total{replay}"] for values in said] == [0, 4, 4, 6]


def test_another_reader_s_counts_are_not_compared() -> None:
    samples = [
        health(0.0, ecc_errors_total=(("corrected", 2.0),)),
        health(1.0, reader=9.0, ecc_errors_total=(("corrected", 900.0),)),
        health(2.0, reader=9.0, ecc_errors_total=(("corrected", 901.0),)),
    ]
    assert last(ERRORS, samples)["gpu_ecc_errors_total{corrected}"] == 1


def test_states_are_told_as_they_are() -> None:
    rows = (("correctable", 3.0), ("pending", 1.0))
    sample = health(
        0.0,
        temperature_celsius=61.0,
        power_watts=512.5,
        remapped_rows=rows,
        recovery_action=1,
        persistence_mode=False,
    )
    assert last(HEALTH, [sample]) == {"gpu_temperature_celsius": 61, "gpu_power_watts": 512.5}
    assert last(ERRORS, [sample]) == {
        "gpu_remapped_rows{correctable}": 3,
        "gpu_remapped_rows{pending}": 1,
        "gpu_recovery_action": 1,
        "gpu_persistence_mode": 0,
    }


def test_what_changes_is_told_though_the_rest_stays_the_same() -> None:
    samples = [
        health(float(at), temperature_celsius=60.0 + at, recovery_action=int(at == 2)) for at in range(4)
    ]
    assert [values["gpu_temperature_celsius"] for values in run(HEALTH, samples)] == [60, 61, 62, 63]
    assert [values["gpu_recovery_action"] for values in run(ERRORS, samples)] == [0, 0, 1, 0]


def test_every_xid_counts_the_first_one_too() -> None:
    samples = [
        gpu(0.0, xids_total=((63, 1.0),), xid_last_at=-5.0),
        gpu(1.0, xids_total=((63, 1.0), (79, 1.0)), xid_last_at=0.5, up=False),
        gpu(2.0, xids_total=((63, 1.0), (79, 1.0)), xid_last_at=0.5, up=False),
    ]
    said = run(HEALTH, samples)
    assert said[0] == {"gpu_xid_errors_total{63}": 1, "gpu_xid_last_timestamp_seconds": -5}
    assert said[2] == {
        "gpu_xid_errors_total{63}": 1,
        "gpu_xid_errors_total{79}": 1,
        "gpu_xid_last_timestamp_seconds": 0.5,
    }


def test_xids_are_remembered_when_the_reader_begins_anew_and_counted_on() -> None:
    samples = [
        gpu(0.0, reader_started_at=1.0, xids_total=((13, 4.0),), xid_last_at=0.0),
        gpu(1.0, reader_started_at=2.0),
        gpu(2.0, reader_started_at=2.0, xids_total=((13, 1.0),), xid_last_at=2.0),
        gpu(3.0, reader_started_at=3.0, xids_total=((13, 1.0),), xid_last_at=3.0),
    ]
    said = run(HEALTH, samples)
    assert [values["gpu_xid_errors_total{13}"] for values in said] == [4, 4, 5, 6]
    assert [values["gpu_xid_last_timestamp_seconds"] for values in said] == [0, 0, 2, 3]


def test_more_numbers_of_xids_than_there_can_be_are_told_as_one_series() -> None:
    many = tuple((xid, 1.0) for xid in range(1, MOST_XIDS + 1))
    samples = [
        gpu(1.0, xids_total=many[:-1]),
        gpu(2.0, xids_total=(*many, (5000, 2.0), (5001, 1.0))),
        gpu(3.0, xids_total=(*many[:-1], (MOST_XIDS, 4.0), (5000, 2.0), (5001, 3.0), (5002, 1.0))),
    ]
    said = run(HEALTH, samples)
    told = [name for name in said[-1] if name.startswith("gpu_xid_errors_total")]
    assert len(told) == MOST_XIDS + 1
    assert [values.get("gpu_xid_errors_total{other}") for values in said] == [None, 3, 6]
    assert said[-1][f"gpu_xid_errors_total{{{MOST_XIDS}}}"] == 4, "a series that is there goes on"
    assert said[-1]["gpu_xid_errors_total{7}"] == 1


def test_an_xid_that_two_sources_tell_of_counts_once_whichever_of_them_is_asked() -> None:
    """A sampler that hangs now and then, with a dcgm-exporter beside it, each second and through new readers."""
    count, at, samples = 0.0, 0.0, []
    for turn in range(12):
        count += turn % 3 == 0  # an event at each fourth change of sources
        for started_at in (0.25, 0.75):
            told = ((79, count),)
            samples += [gpu(at + second, reader_started_at=started_at, xids_total=told) for second in (1, 2)]
            at += 2
    assert last(HEALTH, samples)["gpu_xid_errors_total{79}"] == count == 4
    # the sampler begins anew, as the other goes on
    samples += [gpu(at + 1, reader_started_at=at, xids_total=((79, 2.0),))]
    samples += [gpu(at + 2, reader_started_at=0.75, xids_total=((79, 6.0),))]
    assert last(HEALTH, samples)["gpu_xid_errors_total{79}"] == 6


def test_an_xid_that_one_source_tells_of_as_it_fails_and_the_other_later_counts_once() -> None:
    samples = [
        gpu(1.0, reader_started_at=0.25),
        gpu(2.0, reader_started_at=0.25, xids_total=((79, 1.0),), up=False),
        gpu(3.0, reader_started_at=0.75),
        gpu(4.0, reader_started_at=0.75, xids_total=((79, 1.0),)),
    ]
    said = run(HEALTH, samples)
    assert [values.get("gpu_xid_errors_total{79}") for values in said] == [None, 1, 1, 1]


def test_readers_of_long_ago_are_forgotten() -> None:
    state = HEALTH.initial
    for at in range(1, 100):
        sample = gpu(float(at), reader_started_at=at - 0.5, xids_total=((13, 1.0),), xid_last_at=float(at))
        state, points = HEALTH.derive(Window().appended(sample), EngineFacts(), state)
    assert points[0].value == 99
    assert len(state.state.missed) == 4


def test_a_healthy_gpu_has_no_xid() -> None:
    assert last(HEALTH, [gpu(0.0), gpu(1.0)]) == {}


def test_nvlink() -> None:
    samples = [gpu(float(at), nvlink=NvLink(9e12 + 4e9 * at, 3e9 * at, 17, 1)) for at in range(12)]
    said = last(NVLINK, samples)
    assert said["nvlink_links{active}"] == 17
    assert said["nvlink_links{inactive}"] == 1
    assert said["nvlink_bytes_total{out}"] == 44e9
    assert said["nvlink_bytes_per_second{in}"] == 3e9
    assert said["nvlink_bytes_per_second_peak{out}"] == 4e9
    assert last(NVLINK, [gpu(0.0)]) == {}


def test_nvlink_counters_that_begin_anew_are_no_burst() -> None:
    counts = [5e9, 6e9, 0.0, 1e9]
    said = run(NVLINK, [gpu(float(at), nvlink=NvLink(n)) for at, n in enumerate(counts)])
    assert [values["nvlink_bytes_total{out}"] for values in said] == [0, 1e9, 1e9, 2e9]
    assert "nvlink_bytes_total{in}" not in said[-1]


def test_nvlink_of_a_source_that_only_knows_rates() -> None:
    apart = [
        gpu(float(at), nvlink=NvLink(out_bytes_per_second=2e9, in_bytes_per_second=1e9)) for at in range(12)
    ]
    said = last(NVLINK, apart)
    assert said["nvlink_bytes_total{out}"] == 22e9
    assert said["nvlink_bytes_per_second{in}"] == 1e9
    assert "nvlink_bytes_total{both}" not in said
    together = last(NVLINK, [gpu(float(at), nvlink=NvLink(bytes_per_second=3e9)) for at in range(12)])
    assert together == {
        "nvlink_bytes_total{both}": 33e9,
        "nvlink_bytes_per_second{both}": 3e9,
        "nvlink_bytes_per_second_peak{both}": 3e9,
    }


def test_nvlink_that_is_read_every_five_seconds_has_no_peak_of_five_times_its_rate() -> None:
    samples = [
        gpu(float(at), nvlink=NvLink(1e9 * (at // 5 * 5), read_at=float(at // 5 * 5))) for at in range(60)
    ]
    said = run(NVLINK, samples)
    assert [values["nvlink_bytes_total{out}"] for values in said[8:12]] == [5e9, 5e9, 10e9, 10e9]
    assert said[-1]["nvlink_bytes_per_second{out}"] == 1e9
    assert said[-1]["nvlink_bytes_per_second_peak{out}"] == 1e9


def test_nvlink_of_another_source_counts_from_somewhere_else() -> None:
    samples = [
        gpu(
            float(at),
            nvlink=NvLink(5e15 + 1e9 * at, source="dcgm") if 20 <= at < 30 else NvLink(1e9 * at),
        )
        for at in range(60)
    ]
    said = last(NVLINK, samples)
    assert said["nvlink_bytes_total{out}"] == 57e9, "a second of each change is not known"
    assert said["nvlink_bytes_per_second_peak{out}"] == 1e9
