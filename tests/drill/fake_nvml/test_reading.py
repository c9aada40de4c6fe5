"""What the real binding reads from the fake library."""

from __future__ import annotations

import pytest

from drill.fake_nvml import (
    A100,
    DRIVER_590,
    H100,
    H200,
    OUTSIDE_MIG,
    RTX_4090,
    T4,
    Flow,
    ProcessKind,
)
from tests.drill.fake_nvml.calling import Caller
from tests.drill.fake_nvml.conftest import Machine
from tests.support.fake_library import Without

MIB = 1 << 20
WRAP = 1 << 32


def test_the_machine_and_its_gpus_have_names(machine: Machine) -> None:
    _, call = machine(H100, H200)
    assert call("nvmlSystemGetDriverVersion()") == "590.48.01"
    assert call("nvmlSystemGetNVMLVersion()") == "13.590.48.01"
    assert call("nvmlSystemGetCudaDriverVersion()") == 13010
    assert call("nvmlDeviceGetCount()") == 2
    assert [call(f"nvmlDeviceGetName(gpu({k}))") for k in (0, 1)] == ["NVIDIA H100 80GB HBM3", "NVIDIA H200"]
    assert call("nvmlDeviceGetUUID(gpu(1))") == "GPU-00000000-0000-0000-0000-000000000001"
    assert call("nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID(gpu(1))))") == 1
    assert call("nvmlDeviceGetPciInfo(gpu(1))")["busId"] == "00000000:1A:00.0"
    assert call("nvmlDeviceGetMinorNumber(nvmlDeviceGetHandleByPciBusId('00000000:1a:00.0'))") == 1
    assert call("nvmlDeviceGetArchitecture(gpu(0))") == 9
    assert call("nvmlDeviceGetVirtualizationMode(gpu(1))") == 1


def test_only_the_second_version_of_memory_keeps_what_is_reserved_apart(machine: Machine) -> None:
    control, call = machine(H200)
    control.device(0).memory_used = 1000 * MIB
    first = call("nvmlDeviceGetMemoryInfo(gpu(0))")
    second = call("nvmlDeviceGetMemoryInfo(gpu(0), version=nvmlMemory_v2)")
    assert (first["total"], first["used"]) == (143771 * MIB, 1614 * MIB)
    assert (second["total"], second["used"], second["reserved"]) == (143771 * MIB, 1000 * MIB, 614 * MIB)
    assert first["free"] == second["free"] == (143771 - 1614) * MIB
    assert call.refusal("nvmlDeviceGetMemoryInfo(gpu(0), version=7)") == (
        "NVMLError_ArgumentVersionMismatch",
        25,
    )
    assert call("nvmlDeviceGetBAR1MemoryInfo(gpu(0))")["bar1Used"] == MIB


def test_utilisation_and_health_follow_while_the_program_runs(machine: Machine) -> None:
    control, call = machine(H100)
    gpu = control.device(0)
    gpu.gpu_util, gpu.memory_util, gpu.power_mw, gpu.temperature, gpu.energy_mj = 97, 41, 650_000, 71, 12345
    gpu.clock_reasons = 0x4
    assert call("nvmlDeviceGetUtilizationRates(gpu(0))") == {"gpu": 97, "memory": 41}
    assert call("nvmlDeviceGetPowerUsage(gpu(0))") == 650_000
    assert call("nvmlDeviceGetTotalEnergyConsumption(gpu(0))") == 12345
    assert call("nvmlDeviceGetTemperature(gpu(0), NVML_TEMPERATURE_GPU)") == 71
    assert call("nvmlDeviceGetCurrentClocksEventReasons(gpu(0))") == 4
    assert call("nvmlDeviceGetCurrentClocksThrottleReasons(gpu(0))") == 4
    gpu.sm_clock, gpu.memory_clock = 1980, 2619
    assert [call(f"nvmlDeviceGetClockInfo(gpu(0), {k})") for k in (0, 1, 2)] == [1980, 1980, 2619]
    gpu.violations_ns[1], gpu.violations_ns[7] = 5_000, 7_000
    policies = ("NVML_PERF_POLICY_THERMAL", "NVML_PERF_POLICY_TOTAL_BASE_CLOCKS")
    held_down = [call(f"nvmlDeviceGetViolationStatus(gpu(0), {each})")["violationTime"] for each in policies]
    assert held_down == [field["value"] for field in call.fields(75, 81)] == [5_000, 7_000]
    gpu.gpu_util = 3
    assert call("nvmlDeviceGetUtilizationRates(gpu(0))")["gpu"] == 3


def test_a_link_that_saves_power_runs_slowly_until_something_flows(machine: Machine) -> None:
    control, call = machine(RTX_4090, H100)
    generation = "nvmlDeviceGetCurrPcieLinkGeneration(gpu({}))"
    assert [call(generation.format(k)) for k in (0, 1)] == [1, 5]
    control.traffic(0, receive=5e9)
    assert call(generation.format(0)) == 4
    assert [call(f"nvmlDeviceGetPcieSpeed(gpu({k}))") for k in (0, 1)] == [16_000, 32_000]
    assert call("nvmlDeviceGetPcieLinkMaxSpeed(gpu(0))") == 4
    assert call("nvmlDeviceGetMaxPcieLinkGeneration(gpu(0))") == 4
    assert call("nvmlDeviceGetGpuMaxPcieLinkGeneration(gpu(0))") == 4
    control.device(0).width_current = 8
    assert call("nvmlDeviceGetCurrPcieLinkWidth(gpu(0))") == 8
    assert call("nvmlDeviceGetMaxPcieLinkWidth(gpu(0))") == 16


def test_one_traffic_drives_throughput_counters_and_gpm_alike(machine: Machine) -> None:
    control, call = machine(H100)
    control.traffic(0, transmit=3e8, receive=5e8)
    before = call.fields(197, 198)
    call("(a := sample(gpu(0)))")
    control.advance(2)
    after = call.fields(197, 198)
    assert [new["value"] - old["value"] for old, new in zip(before, after, strict=True)] == [6e8, 1e9]
    assert call("nvmlDeviceGetPcieThroughput(gpu(0), NVML_PCIE_UTIL_TX_BYTES)") == 300_000
    assert call("nvmlDeviceGetPcieThroughput(gpu(0), NVML_PCIE_UTIL_RX_BYTES)") == 500_000
    (tx, rx, unknown) = call("metrics(a, sample(gpu(0)), 20, 21, 99)")
    assert tx == [0, pytest.approx(3e8 / MIB)]
    assert rx == [0, pytest.approx(5e8 / MIB)]
    assert unknown[0] == 3


def test_a_rate_that_changes_leaves_the_counter_where_it_was(machine: Machine) -> None:
    control, call = machine(H100)
    control.set_moved(0, Flow.PCIE_TX, 0)
    for rate in (1e6, 5e8, 0.0):
        control.traffic(0, transmit=rate)
        control.advance(1)
    assert call.fields(197)[0]["value"] == control.moved(0, Flow.PCIE_TX) == 501_000_000


def test_who_reads_while_rates_change_sees_no_half_of_a_change(machine: Machine) -> None:
    control, call = machine(H100, own_clock=False)
    read = "[nvmlDeviceGetFieldValues(h, [197])[0].value.uiVal for _ in range(20000)]"
    call("(h := gpu(0))")
    steps = f"(lambda read: max((new - old) % 2**32 for old, new in zip(read, read[1:])))({read})"
    thread = call(f"begin({steps!r})")
    changes = 0
    while (answer := call(f"outcome({thread}, 0)")) == "hangs":
        for rate in (1e6, 2e6, 3e6):
            control.traffic(0, transmit=rate)
            changes += 1
    assert changes > 10
    # back by a single byte would be 4 GB on
    assert answer["value"] < 3e6 * 30


def test_two_programs_share_the_gpus_and_nothing_else(machine: Machine, fake_library: Without) -> None:
    control, call = machine(H100)
    with Caller(control, fake_library(*DRIVER_590.hidden)) as other:
        assert other.refusal("nvmlDeviceGetCount()") == ("NVMLError_Uninitialized", 1)
        other("nvmlInit()")
        control.set_moved(0, Flow.PCIE_RX, 77)
        assert call.fields(198)[0]["value"] == other.fields(198)[0]["value"] == 77
        call("nvmlShutdown()")
        assert other("nvmlDeviceGetName(gpu(0))") == H100.name


def test_the_byte_counters_wrap_at_32_bits(machine: Machine) -> None:
    control, call = machine(H100)
    control.traffic(0, transmit=2000, receive=0)
    control.set_moved(0, Flow.PCIE_TX, WRAP - 1)
    control.set_moved(0, Flow.PCIE_RX, 3 * WRAP + 5)
    assert [field["value"] for field in call.fields(197, 198)] == [WRAP - 1, 5]
    control.advance(1)
    (field,) = call.fields(197)
    assert (field["type"], field["value"]) == (1, 1999)
    assert field["wide"] != field["value"], "the union's other half is not zero"
    assert control.moved(0, Flow.PCIE_TX) == WRAP + 1999


def test_the_throughput_call_blocks_for_its_window_and_gives_the_mean_over_it(machine: Machine) -> None:
    control, call = machine(H100, own_clock=False)
    control.traffic(0, transmit=4e9)
    call("__import__('time').monotonic()")
    call("(begun := __import__('time').monotonic())")
    mean = call("nvmlDeviceGetPcieThroughput(gpu(0), 0)")
    assert call("__import__('time').monotonic() - begun") >= 0.02
    assert mean == pytest.approx(4e6, rel=0.001)


def test_fields_carry_their_own_code_and_type(machine: Machine) -> None:
    control, call = machine(H100)
    control.device(0).memory_temperature = 58
    control.device(0).remapped[:] = [1, 2, 0, 1]
    control.device(0).recovery_action = 2
    values = call.fields(82, 83, 142, 143, 144, 145, 186, 230, 999)
    assert [field["code"] for field in values] == [0] * 8 + [3]
    assert [field["value"] for field in values[:8]] == [58, 0, 1, 2, 0, 1, 77670, 2]
    assert [field["type"] for field in values[:2]] == [1, 3]
    control.field(0, 999, 2.5, kind=0)
    control.field(0, 82, code=15)
    assert [(field["code"], field["value"]) for field in call.fields(999, 82)] == [(0, 2.5), (15, None)]


def test_nvlink_has_states_errors_and_traffic_by_link(machine: Machine) -> None:
    control, call = machine(A100)
    control.device(0).nvlink_active &= ~(1 << 3)
    control.device(0).link_errors[5][2] = 9
    states = [call(f"nvmlDeviceGetNvLinkState(gpu(0), {link})") for link in range(12)]
    assert states == [1, 1, 1, 0, *[1] * 8]
    assert call.refusal("nvmlDeviceGetNvLinkState(gpu(0), 12)") == ("NVMLError_InvalidArgument", 2)
    assert call("nvmlDeviceGetNvLinkVersion(gpu(0), 0)") == 3
    assert call("nvmlDeviceGetNvLinkErrorCounter(gpu(0), 5, NVML_NVLINK_ERROR_DL_CRC_FLIT)") == 9
    control.nvlink_traffic(0, transmit=11 * 1024 * 1000, receive=22 * 1024 * 1000)
    control.advance(1)
    values = call.fields(
        (138, 0xFFFFFFFF), (139, 0xFFFFFFFF), (138, 0), (139, 2), (138, 3), (140, 0xFFFFFFFF)
    )
    assert [field["value"] for field in values] == [11_000, 22_000, 1_000, 2_000, 0, 12_100]


def test_processes_are_listed_by_kind_and_what_is_not_known_is_none(machine: Machine) -> None:
    control, call = machine(H100)
    for listed in ("Compute", "Graphics", "MPSCompute"):
        assert call(f"nvmlDeviceGet{listed}RunningProcesses(gpu(0))") == []
    control.start(0, 4242, 5 * MIB, sm_util=80, memory_util=30)
    control.start(0, 4243, (1 << 64) - 1)
    control.start(0, 17, MIB, kind=ProcessKind.GRAPHICS)
    compute = call("nvmlDeviceGetComputeRunningProcesses(gpu(0))")
    assert [(one["pid"], one["usedGpuMemory"]) for one in compute] == [(4242, 5 * MIB), (4243, None)]
    assert compute[0]["gpuInstanceId"] == 0xFFFFFFFF
    assert [one["pid"] for one in call("nvmlDeviceGetGraphicsRunningProcesses(gpu(0))")] == [17]
    (busy,) = call("nvmlDeviceGetProcessUtilization(gpu(0), 0)")
    assert (busy["pid"], busy["smUtil"], busy["memUtil"]) == (4242, 80, 30)
    newest = busy["timeStamp"]
    assert call.refusal(f"nvmlDeviceGetProcessUtilization(gpu(0), {newest})") == ("NVMLError_NotFound", 6)
    control.end_processes(0)
    assert call.refusal("nvmlDeviceGetProcessUtilization(gpu(0), 0)")[1] == 6


def test_samples_come_every_sixth_of_a_second_and_each_only_once(machine: Machine) -> None:
    control, call = machine(H100)
    control.device(0).gpu_util, control.device(0).memory_util = 66, 7
    kind, samples = call("nvmlDeviceGetSamples(gpu(0), NVML_GPU_UTILIZATION_SAMPLES, 0)")
    assert (kind, len(samples), samples[0]["sampleValue"]) == (1, 100, 66)
    newest = samples[-1]["timeStamp"]
    again = f"nvmlDeviceGetSamples(gpu(0), NVML_MEMORY_UTILIZATION_SAMPLES, {newest})"
    assert call.refusal(again) == ("NVMLError_NotFound", 6)
    control.advance(1)
    _, fresh = call(again)
    assert [sample["sampleValue"] for sample in fresh] == [7] * 6


def test_ecc_is_told_by_location_in_total_and_added_to_a_used_buffer(machine: Machine) -> None:
    control, call = machine(H100, T4)
    control.device(0).ecc[0][0][2] = 10
    control.device(0).ecc[1][1][7] = 1
    assert call("nvmlDeviceGetEccMode(gpu(0))") == [1, 1]
    total = "nvmlDeviceGetTotalEccErrors(gpu(0), {}, {})"
    assert [call(total.format(kind, counter)) for kind in (0, 1) for counter in (0, 1)] == [10, 0, 0, 1]
    assert call("nvmlDeviceGetDetailedEccErrors(gpu(0), 0, 0)")["deviceMemory"] == 10
    assert call("nvmlDeviceGetMemoryErrorCounter(gpu(0), 1, 1, NVML_MEMORY_LOCATION_SRAM)") == 1
    assert [field["value"] for field in call.fields(3, 4, 5, 6)] == [10, 0, 0, 1]
    assert call("reused(gpu(0), 3, 3)") == [10, 20, 30]
    assert call("nvmlDeviceGetRemappedRows(gpu(0))") == [0, 0, 0, 0]
    control.device(0).ecc_enabled = 0
    assert call.refusal(total.format(0, 0)) == ("NVMLError_NotSupported", 3)


def test_gpm_gives_no_number_for_no_time_and_what_it_is_told_for_the_rest(machine: Machine) -> None:
    control, call = machine(H100)
    control.metric(0, 2, 88.5)
    control.metric(0, 10, code=3)
    control.nvlink_traffic(0, receive=float(MIB))
    call("(a := sample(gpu(0)))")
    assert call("repr(metrics(a, sample(gpu(0)), 20))") == "[[0, nan]]"
    control.advance(0.5)
    assert call("metrics(a, sample(gpu(0)), 2, 10, 60, 61)") == [[0, 88.5], [3, 0], [0, 1], [0, 0]]


def test_gpm_shows_what_flowed_a_while_ago(machine: Machine) -> None:
    control, call = machine(H100)
    control.device(0).gpm_lag_us = 70_000
    control.traffic(0, transmit=float(MIB) * 1000)
    control.advance(1)
    call("(a := sample(gpu(0)))")
    control.traffic(0, transmit=0)
    control.advance(0.2)
    # the flow ended with the first sample, which had shown it but for 70 ms
    assert call("metrics(a, sample(gpu(0)), 20)") == [[0, pytest.approx(1000 * 0.07 / 0.2)]]


def test_a_driver_whose_list_has_wider_entries_gives_only_the_first_right(machine: Machine) -> None:
    control, call = machine(H100)
    control.board.wide_processes = 1
    for pid in (11, 12, 13):
        control.start(0, pid, MIB)
    for listed in ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses"):
        assert [one["pid"] for one in call(f"{listed}(gpu(0))")] == [11, 0, OUTSIDE_MIG]
    assert [one["pid"] for one in call("nvmlDeviceGetComputeRunningProcesses_v2(gpu(0))")] == [11, 12, 13]
