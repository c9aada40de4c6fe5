"""What went wrong elsewhere with numbers that drivers tell: memory, utilisation, fields, processes, PCIe bytes.

Each as it was reported, with its values.
"""

from __future__ import annotations

import math

import pytest

from drill.fake_nvml import (
    A100,
    DRIVER_535,
    GB10,
    H100,
    H200_MIG,
    L4,
    RTX_4090,
    T4,
    Feature,
    Flow,
)
from exporter.gpu_sample import GpuMemory, GpuProcess, GpuUtilisation
from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.nvml_fields import field_values
from exporter.sampler.nvml_library import loaded
from exporter.sampler.pcie_meter import PcieMeter
from tests.exporter.sampler import test_driver_issues
from tests.exporter.sampler.conftest import Make
from tests.exporter.sampler.issues import MIB, Case, Issues, refusal
from tests.exporter.sampler.machine import Machine

issue = Issues()


def fields(machine: Machine, *ids: int | tuple[int, int]) -> list[float | str]:
    gpu = machine.gpu()
    answers = field_values(loaded(), gpu.handle, ids)
    return [answer.value if answer.error is None else answer.error.reason for answer in answers]


@issue("NVIDIA/dcgm-exporter#721")
def profiling_says_0_while_the_counters_move(make: Make) -> None:
    machine = make(H100)
    control = machine.control
    control.metric(0, 20, 0)
    control.metric(0, 21, 0)
    control.traffic(0, transmit=0, receive=0)
    meter = PcieMeter(machine.gpu(), window=False, clock=machine.clock)
    meter.poll()
    for sent, received in ((3020371496 // 2, 3893142392 // 2), (3020371496, 3893142392)):
        control.set_moved(0, Flow.PCIE_TX, sent)
        control.set_moved(0, Flow.PCIE_RX, received)
        control.advance(0.21)
        meter.poll()
    traffic = meter.traffic()
    assert traffic is not None
    # at Gen5 x16 the counters may have wrapped in 0.21 s: the intervals are in no total, and said to be missing
    assert (traffic.ambiguous_intervals_total, traffic.disagreements_total) == (2, 2)
    control.set_moved(0, Flow.PCIE_TX, 0)
    control.advance(0.21)
    meter.poll()
    assert meter.interval_seconds == 0.05
    traffic = meter.traffic()
    assert traffic is not None
    assert traffic.source == "counter"
    control.set_moved(0, Flow.PCIE_TX, 1_000_000)
    control.advance(0.05)
    meter.poll()
    traffic = meter.traffic()
    assert traffic is not None
    assert traffic.out_bytes_total == 1_000_000


@issue("NVIDIA/dcgm-exporter#87", "NVIDIA/dcgm-exporter#88")
def what_is_a_rate_is_in_no_total(make: Make) -> None:
    machine = make(T4)
    machine.control.traffic(0, transmit=3e8, receive=5e8)
    meter = PcieMeter(machine.gpu(), window=True, clock=machine.clock)
    meter.poll()
    traffic = meter.traffic()
    assert traffic is not None
    assert (traffic.source, traffic.out_bytes_per_second, traffic.in_bytes_per_second) == ("window", 3e8, 5e8)
    assert traffic.out_bytes_total is None
    assert traffic.in_bytes_total is None


@issue("NVIDIA/DCGM#199", "NVIDIA/go-dcgm#75")
def utilisation_above_the_whole_is_none(make: Make) -> None:
    machine = make(H100)
    gpu = machine.gpu()
    for nonsense in (4294967295, 1_000, 200_000, 101):
        machine.control.device(0).gpu_util = nonsense
        assert refusal(gpu.utilisation) == ("bad_value", Remedy.RETRY)
    machine.control.device(0).gpu_util = 100
    assert gpu.utilisation() == GpuUtilisation(1.0)


@issue("NVIDIA/DCGM#303")
def profiling_that_says_0_of_a_gpu_that_is_busy_is_stuck(make: Make) -> None:
    machine = make(H100)
    gpu = machine.gpu()
    machine.control.device(0).gpu_util = 100

    def shown(sm_percent: float) -> GpuUtilisation:
        machine.control.metric(0, 2, sm_percent)
        machine.control.metric(0, 10, 40)
        machine.control.advance(1)
        gpu.byte_rates()
        return gpu.utilisation()

    with pytest.raises(ReadError):
        gpu.byte_rates()
    assert shown(60) == GpuUtilisation(1.0, 0.6, 0.4)
    assert shown(0) == GpuUtilisation(1.0)
    machine.control.device(0).gpu_util = 0
    assert shown(0) == GpuUtilisation(0.0, 0.0, 0.4)


@issue("NVIDIA/DCGM#311")
def a_field_with_a_code_of_its_own_has_no_value(make: Make) -> None:
    machine = make(L4)
    machine.control.field(0, 94, 0, code=3)
    assert fields(machine, 82, 94) == ["not_supported", "not_supported"]
    assert machine.gpu().health().pcie_errors_total == ()


@issue("NVIDIA/DCGM#88")
def a_part_of_a_gpu_has_no_pcie(make: Make) -> None:
    machine = make(H200_MIG)
    part = machine.opened()[1]
    for read in (part.byte_rates, part.byte_counters, part.byte_window, part.link, part.nvlink, part.health):
        assert refusal(read) == ("not_supported", Remedy.DROP)


@issue("NVIDIA/DCGM#149")
def nvlink_that_is_not_counted_is_not_0(make: Make) -> None:
    machine = make(A100)
    for field in (138, 139):
        for scope in (0xFFFFFFFF, *range(12)):
            machine.control.field(0, field, 0, code=3, scope=scope)
    nvlink = machine.gpu().nvlink()
    assert (nvlink.out_bytes_total, nvlink.in_bytes_total) == (None, None)
    assert (nvlink.links_active, nvlink.links_inactive) == (12, 0)


@issue("NVIDIA/go-nvml#46")
def counts_are_not_added_to_those_of_the_last_read(make: Make) -> None:
    machine = make(H100)
    machine.control.device(0).ecc[0][0][2] = 10
    assert [fields(machine, 3) for _ in range(4)] == [[10]] * 4  # a reused buffer gave 18, 28, 38, 48


@issue("icl-utk-edu/papi#564")
def a_value_is_read_by_its_type(make: Make) -> None:
    machine = make(H100)
    machine.control.device(0).power_mw = 34007
    assert fields(machine, 186) == [34007]
    assert machine.gpu().health().power_watts == 34.007
    machine.control.device(0).power_mw = 0xFFFFFFFF
    assert machine.gpu().health().power_watts is None


@issue("NVIDIA/cuda-python#2727")
def signed_values_are_read_by_members_that_exist(make: Make) -> None:
    machine = make(H100)
    for field, value, kind in ((900, -5, 4), (901, -7, 5), (902, 65000, 6), (903, 2.5, 0), (904, 7, 2)):
        machine.control.field(0, field, value, kind=kind)
    machine.control.field(0, 905, math.nan, kind=0)
    machine.control.field(0, 906, 0xFFFFFFFF)
    assert fields(machine, *range(900, 907)) == [-5, -7, 65000, 2.5, 7, "no_data", "no_data"]


@issue("wookayin/gpustat#141")
def what_the_driver_reserves_is_not_in_use(make: Make) -> None:
    machine = make(RTX_4090)
    machine.control.device(0).memory_reserved = 308 * MIB
    assert machine.gpu().memory() == GpuMemory(24564.0 * MIB, 0.0, 308.0 * MIB)


@issue("wookayin/gpustat#161", "XuehaiPan/nvitop#88", "XuehaiPan/nvitop#181")
def a_process_list_of_another_layout_is_not_believed(make: Make) -> None:
    machine = make(H100, driver=DRIVER_535)
    for pid in (4242, 4243, 4244):
        machine.control.start(0, pid, pid * MIB)
    listed = loaded().call("nvmlDeviceGetComputeRunningProcesses_v3", machine.gpu().handle)
    assert [one.pid for one in listed] != [4242, 4243, 4244]
    expected = tuple(GpuProcess(pid, float(pid * MIB)) for pid in (4242, 4243, 4244))
    assert machine.gpu().processes() == expected


@issue("XuehaiPan/nvitop#152")
def a_process_id_that_linux_never_gives_condemns_the_list(make: Make) -> None:
    machine = make(H100)
    machine.control.start(0, 4242, MIB)
    machine.control.start(0, (1 << 32) - 4, MIB)
    assert refusal(machine.gpu().processes) == ("bad_value", Remedy.RETRY)


@issue("XuehaiPan/nvitop#5")
def a_partitioned_gpu_has_memory_and_no_utilisation(make: Make) -> None:
    machine = make(A100)
    board = machine.control.device(0)
    board.memory_total, board.memory_used, board.memory_reserved = 42505273344, 14987362304, 0
    board.features &= ~Feature.UTILIZATION
    assert machine.gpu().memory() == GpuMemory(42505273344.0, 14987362304.0, 0.0)
    assert refusal(machine.gpu().byte_rates)[1] == Remedy.DROP
    assert refusal(machine.gpu().utilisation) == ("not_supported", Remedy.DROP)


@issue(
    "XuehaiPan/nvitop#208",
    "leptonai/gpud#1170",
    "wookayin/gpustat#179",
    "NVIDIA/k8s-dra-driver-gpu#1073",
    "NVIDIA/k8s-dra-driver-gpu#1115",
    "inureyes/all-smi#80",
)
def a_gpu_on_the_hosts_memory_has_none_of_its_own(make: Make) -> None:
    machine = make(GB10)
    assert refusal(machine.gpu().memory) == ("not_supported", Remedy.DROP)
    assert machine.gpu().utilisation() == GpuUtilisation(0.0)


@issue("Syllo/nvtop#32", "Syllo/nvtop#449")
def a_driver_without_the_call_has_no_window(make: Make) -> None:
    machine = make(T4, hidden=("nvmlDeviceGetPcieThroughput",))
    assert refusal(machine.gpu().byte_window) == ("not_supported", Remedy.DROP)
    meter = PcieMeter(machine.gpu(), window=True, clock=machine.clock)
    assert refusal(meter.poll) == ("not_supported", Remedy.DROP)
    assert meter.traffic() is None


@issue("NVIDIA/nvidia-settings#114")
def a_kilobyte_of_the_window_is_1000_bytes(make: Make) -> None:
    machine = make(T4)
    machine.control.traffic(0, transmit=371_000, receive=2_012_109_000)
    window = machine.gpu().byte_window()
    assert (window.out_bytes_per_second, window.in_bytes_per_second) == (371_000, 2_012_109_000)


@issue("masel/ctx-cliff: 11.7 GB/s on a link of 7.9")
def more_than_the_link_carries_is_no_rate(make: Make) -> None:
    machine = make(T4)
    machine.control.device(0).width_max = machine.control.device(0).width_current = 8
    machine.control.traffic(0, transmit=11.7e9, receive=7.8e9)
    meter = PcieMeter(machine.gpu(), window=True, clock=machine.clock)
    meter.poll()
    traffic = meter.traffic()
    assert traffic is not None
    assert (traffic.out_bytes_per_second, traffic.in_bytes_per_second) == (None, 7.8e9)


@issue("IST-DASLab/llmq: max - old + new")
def a_wrap_loses_no_byte(make: Make) -> None:
    machine = make(A100)
    machine.control.traffic(0, transmit=0, receive=0)
    machine.control.set_moved(0, Flow.PCIE_TX, (1 << 32) - 1)
    meter = PcieMeter(machine.gpu(), window=False, clock=machine.clock)
    meter.poll()
    machine.control.set_moved(0, Flow.PCIE_TX, 1 << 32)
    machine.control.advance(0.06)
    meter.poll()
    traffic = meter.traffic()
    assert traffic is not None
    assert traffic.out_bytes_total == 1


@issue("getainode/ainode#238", "Azure/aks-gpu#105")
def persistence_that_is_off_shows(make: Make) -> None:
    machine = make(L4)
    assert machine.gpu().health().persistence_mode is True
    machine.control.device(0).persistence = 0
    assert machine.gpu().health().persistence_mode is False


@issue("NVIDIA/open-gpu-kernel-modules#446", "NVIDIA/open-gpu-kernel-modules#1230")
def a_call_that_times_out_is_asked_again(make: Make) -> None:
    machine = make(H100)
    machine.control.fail("nvmlDeviceGetMemoryInfo_v2", 10, times=1)
    assert refusal(machine.gpu().memory) == ("timeout", Remedy.RETRY)
    assert machine.gpu().memory().reserved_bytes == 479 * MIB


@pytest.mark.parametrize("case", issue.values(), ids=list(issue))
def test_what_was_reported_elsewhere_does_not_happen_here(case: Case, machine: Make) -> None:
    case(machine)


def test_no_report_was_lost() -> None:
    names = " ".join([*issue, *test_driver_issues.issue])
    assert names.count("#") >= 68
