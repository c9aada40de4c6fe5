"""What went wrong elsewhere with NVIDIA's GPUs, each as it was reported, with its values."""

from __future__ import annotations

import importlib
import math
import sys
import threading
from collections.abc import Callable
from types import ModuleType

import pytest

from drill.fake_nvml import (
    A100,
    DRIVER_470,
    DRIVER_535,
    GB10,
    H100,
    H200,
    H200_MIG,
    L4,
    RTX_4090,
    T4,
    Feature,
    Flow,
    MigDevice,
    partition,
)
from exporter.gpu_sample import GpuMemory, GpuProcess, GpuUtilisation
from exporter.sampler.backend import Event, ReadError, Remedy
from exporter.sampler.nvml import NvmlBackend
from exporter.sampler.nvml_errors import read_error
from exporter.sampler.nvml_fields import field_values
from exporter.sampler.nvml_library import loaded
from exporter.sampler.pcie_meter import PcieMeter
from tests.exporter.sampler.conftest import Make
from tests.exporter.sampler.machine import Machine

MIB = 1 << 20
NO_BYTES = 0xFFFFFFFFFFFFFFFF
Case = Callable[[Make], None]
CASES: dict[str, Case] = {}


def issue(*names: str) -> Callable[[Case], Case]:
    def reported(case: Case) -> Case:
        CASES[" ".join(names)] = case
        return case

    return reported


def refusal(read: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(ReadError) as caught:
        read()
    return caught.value.reason, caught.value.remedy


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


@issue("NVIDIA/dcgm-exporter#500")
def an_xid_is_told_once(make: Make) -> None:
    machine = make(H100, H100)
    machine.opened()
    machine.control.xid(1, 79)
    machine.control.xid(1, 79)
    uuid = machine.gpu(1).identity.uuid
    assert [machine.backend.next_event(0.01) for _ in range(3)] == [Event(uuid, 79), Event(uuid, 79), None]


@issue("NVIDIA/dcgm-exporter#96", "NVIDIA/DCGM#144", "NVIDIA/dcgm-exporter#164", "NVIDIA/go-dcgm#38")
def a_gpu_that_hangs_delays_no_other(make: Make) -> None:
    machine = make(H100, A100)
    machine.opened()
    rule = machine.control.hang("nvmlDeviceGetMemoryInfo_v2", 0)
    read: list[GpuMemory] = []
    thread = threading.Thread(target=lambda: read.append(machine.gpu(0).memory()), daemon=True)
    thread.start()
    assert machine.gpu(1).memory().total_bytes == 81920 * MIB
    assert read == []
    machine.control.release(rule)
    thread.join(10)
    assert read == [machine.gpu(0).memory()]


@issue("NVIDIA/dcgm-exporter#292", "NVIDIA/dcgm-exporter#536", "NVIDIA/gpu-operator#340")
def memory_does_not_grow_with_reads(make: Make) -> None:
    machine = make(H100)
    gpu = machine.gpu()
    meter = PcieMeter(gpu, window=False, clock=machine.clock)

    def read(times: int) -> int:
        for _ in range(times):
            machine.control.advance(1)
            for group in (meter.poll, gpu.memory, gpu.utilisation, gpu.link, gpu.nvlink, gpu.health):
                group()
        with open("/proc/self/statm") as statm:  # noqa: PTH123 - the kernel's, read often
            return int(statm.read().split()[1]) * 4096

    settled = read(1000)
    assert read(4000) - settled < MIB


@issue("NVIDIA/dcgm-exporter#443", "NVIDIA/gpu-monitoring-tools#142", "utkuozdemir/nvidia_gpu_exporter#203")
def instances_have_gaps_share_memory_and_change(make: Make) -> None:
    machine = make(H200_MIG)
    whole, first, second = machine.opened()
    assert [first.identity.gpu_instance, second.identity.gpu_instance] == [1, 2]
    assert first.identity.parent_uuid == whole.identity.uuid
    assert first.memory() == GpuMemory(71424.0 * MIB, 16925.0 * MIB, 0.0)
    partition(machine.control.device(0), (None, MigDevice(5, 0, 35712, 8)))
    assert refusal(first.memory) == ("gone", Remedy.DEVICE_DOWN)
    assert [device.identity.gpu_instance for device in machine.backend.devices()] == [None, 5]
    assert machine.backend.devices()[0] is whole


@issue("NVIDIA/dcgm-exporter#348")
def a_gpu_that_fell_off_the_bus_is_known_to_be_missing(make: Make) -> None:
    machine = make(*[H100] * 8)
    machine.opened()
    machine.control.lose(3)
    assert refusal(machine.gpu(3).memory) == ("gpu_lost", Remedy.DEVICE_DOWN)
    assert len(machine.backend.devices()) == machine.backend.expected == 8
    machine.control.lose(3, gone=True)
    assert len(machine.backend.devices()) == 8
    assert machine.backend.expected == 7
    assert machine.gpu(4).memory().total_bytes == 81559 * MIB


@issue("NVIDIA/gpu-monitoring-tools#174", "blakeblackshear/frigate-exporter#9")
def two_gpus_of_one_uuid_are_one(make: Make) -> None:
    machine = make(H100, L4, T4)
    machine.control.device(1).uuid = machine.control.device(0).uuid
    assert [device.identity.device_index for device in machine.opened()] == [0, 2]
    ((index, error),) = machine.backend.unopened()
    assert (index, error.reason) == (1, "duplicate_uuid")


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


@issue("NVIDIA/go-nvml#82", "NVIDIA/go-nvml#21", "NVIDIA/go-nvml#36")
def a_function_that_vanishes_while_running_costs_itself(make: Make) -> None:
    machine = make(H100)
    gpu = machine.gpu()
    machine.control.device(0).memory_used = 5 * MIB
    machine.control.fail("nvmlDeviceGetMemoryInfo_v2", 13, after=1)
    machine.control.fail("nvmlDeviceGetComputeRunningProcesses_v3", 13)
    machine.control.fail("nvmlDeviceGetComputeRunningProcesses_v2", 13)
    assert gpu.memory() == GpuMemory(81559.0 * MIB, 5.0 * MIB, 479.0 * MIB)
    assert gpu.memory() == GpuMemory(81559.0 * MIB, 484.0 * MIB, None)
    assert refusal(gpu.processes) == ("not_supported", Remedy.DROP)


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


@issue("utkuozdemir/nvidia_gpu_exporter#65")
def what_failed_at_first_works_later(make: Make) -> None:
    machine = make(H100)
    machine.control.fail("nvmlInitWithFlags", 9, times=2)
    for _ in range(2):
        assert refusal(machine.backend.open) == ("no_driver", Remedy.RETRY)
    assert [device.memory().total_bytes for device in machine.opened()] == [81559 * MIB]


@issue(
    "utkuozdemir/nvidia_gpu_exporter#110", "NVIDIA/nvidia-container-toolkit#48", "NVIDIA/nvidia-docker#1730"
)
def a_container_whose_devices_were_taken_away_is_to_be_restarted(make: Make) -> None:
    machine = make(H100)
    machine.control.fail("nvmlInitWithFlags", 999)
    with pytest.raises(
        ReadError, match=r"NVML code 999.*systemctl daemon-reload.*restart the container"
    ) as caught:
        machine.backend.open()
    assert caught.value.reason == "unknown"


@issue("NVIDIA/nvidia-container-toolkit#251", "NVIDIA/nvidia-container-toolkit#1227")
def a_gpu_that_a_cgroup_hides_is_counted_and_not_opened(make: Make) -> None:
    machine = make(H100, A100)
    machine.control.fail("nvmlDeviceGetHandleByIndex_v2", 4, device=1)
    machine.control.fail("nvmlDeviceGetPowerUsage", 17, device=0, after=1)
    (gpu,) = machine.opened()
    ((index, error),) = machine.backend.unopened()
    assert (index, error.reason, machine.backend.expected) == (1, "no_permission", 2)
    gpu.health()
    assert refusal(gpu.health) == ("no_permission", Remedy.DEVICE_DOWN)


@issue("utkuozdemir/nvidia_gpu_exporter#354", "utkuozdemir/nvidia_gpu_exporter#393")
def a_gpu_that_wants_a_reset_says_so(make: Make) -> None:
    machine = make(H200, H200)
    gpu = machine.gpu()
    machine.control.device(0).recovery_action = 1
    machine.control.fail("nvmlDeviceGetMemoryInfo_v2", 15, device=0)
    machine.control.fail("nvmlDeviceGetUtilizationRates", 999, device=0)
    assert gpu.health().recovery_action == 1
    assert refusal(gpu.memory) == ("gpu_lost", Remedy.DEVICE_DOWN)
    assert refusal(gpu.utilisation) == ("unknown", Remedy.RETRY)
    assert machine.gpu(1).health().recovery_action == 0


@issue("wookayin/gpustat#35", "wookayin/gpustat#105")
def an_error_that_cannot_be_hashed_is_named_all_the_same(make: Make) -> None:
    make(H100)
    pynvml = importlib.import_module("pynvml")
    for code, reason in ((3, "not_supported"), (77, "other"), (15, "gpu_lost")):
        error = pynvml.NVMLError(code)
        with pytest.raises(TypeError, match="unhashable"):
            hash(error)
        assert read_error("nvmlFly", error).reason == reason


@issue("wookayin/gpustat#141")
def what_the_driver_reserves_is_not_in_use(make: Make) -> None:
    machine = make(RTX_4090)
    machine.control.device(0).memory_reserved = 308 * MIB
    assert machine.gpu().memory() == GpuMemory(24564.0 * MIB, 0.0, 308.0 * MIB)


@issue("wookayin/gpustat#147")
def a_driver_that_was_upgraded_takes_a_new_process(make: Make) -> None:
    machine = make(H100)
    machine.control.fail("nvmlInitWithFlags", 18)
    with pytest.raises(ReadError, match=r"NVML code 18\).*the driver was upgraded") as caught:
        machine.backend.open()
    assert (caught.value.reason, caught.value.remedy) == ("version_mismatch", Remedy.REOPEN)


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


@issue("gpuopenanalytics/pynvml#48", "wookayin/gpustat#153")
def the_binding_does_not_fit_an_old_driver(make: Make) -> None:
    machine = make(H100, driver=DRIVER_470)
    machine.control.start(0, 77, 3 * MIB)
    pynvml = importlib.import_module("pynvml")
    with pytest.raises(pynvml.NVMLLibraryMismatchError) as caught:
        pynvml.nvmlDeviceGetComputeRunningProcesses(machine.gpu().handle)
    error = read_error("nvmlDeviceGetComputeRunningProcesses", caught.value)
    assert (error.reason, error.remedy) == ("not_supported", Remedy.DROP)
    assert machine.gpu().processes() == (GpuProcess(77, 3.0 * MIB),)


@issue("gpuopenanalytics/pynvml#43", "gpuopenanalytics/pynvml#47", "mlco2/codecarbon#933")
def another_package_of_the_name_is_no_crash(make: Make) -> None:
    make(H100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pynvml", ModuleType("pynvml"))
        with pytest.raises(ReadError, match="uninstall pynvml") as caught:
            NvmlBackend().open()
    assert caught.value.reason == "wrong_binding"


@issue("gpuopenanalytics/pynvml: an old release under the same name")
def a_binding_of_old_lacks_what_it_lacks(make: Make) -> None:
    machine = make(H100)
    pynvml = importlib.import_module("pynvml")
    old = ModuleType("pynvml")
    vars(old).update({name: value for name, value in vars(pynvml).items() if "Gpm" not in name})

    def of_the_first_version(handle: object) -> object:
        return pynvml.nvmlDeviceGetMemoryInfo(handle)

    vars(old)["nvmlDeviceGetMemoryInfo"] = of_the_first_version  # as in 11.4
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pynvml", old)
        gpu = machine.gpu()
        assert gpu.memory() == GpuMemory(81559.0 * MIB, 479.0 * MIB, None)
        assert refusal(gpu.byte_rates) == ("not_supported", Remedy.DROP)
        assert gpu.byte_counters().bits == 32


@issue("wookayin/gpustat#102")
def instances_that_may_not_be_seen_are_told_of(make: Make) -> None:
    machine = make(H200_MIG)
    machine.control.fail("nvmlDeviceGetMigDeviceHandleByIndex", 4)
    (whole,) = machine.opened()
    assert whole.memory().used_bytes == 16925 * MIB
    ((index, error),) = machine.backend.unopened()
    assert (index, error.reason) == (0, "no_permission")
    assert "NVIDIA_MIG_MONITOR_DEVICES=all" in str(error)


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


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_what_was_reported_elsewhere_does_not_happen_here(case: Case, machine: Make) -> None:
    case(machine)


def test_no_report_was_lost() -> None:
    assert sum(name.count("#") for name in CASES) >= 60
