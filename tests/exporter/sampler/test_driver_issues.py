"""What went wrong elsewhere with drivers: opening them, GPUs that come, go and hang, bindings that don't fit.

Each as it was reported, with its values.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from types import ModuleType

import pytest

from drill.fake_nvml import (
    A100,
    DRIVER_470,
    H100,
    H200,
    H200_MIG,
    L4,
    T4,
    MigDevice,
    partition,
)
from exporter.gpu_sample import GpuMemory, GpuProcess
from exporter.sampler.backend import Event, ReadError, Remedy
from exporter.sampler.nvml import NvmlBackend
from exporter.sampler.nvml_errors import read_error
from exporter.sampler.pcie_meter import PcieMeter
from tests.exporter.sampler.conftest import Make
from tests.exporter.sampler.issues import MIB, Case, Issues, refusal

issue = Issues()


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


@issue("NVIDIA/gpu-monitoring-tools#46")
def a_call_in_state_d_comes_back_when_the_driver_does(make: Make) -> None:
    machine = make(H100)
    gpu = machine.gpu()
    rule = machine.control.hang("nvmlDeviceGetPowerUsage", 0, uninterruptible=True)
    powers: list[float | None] = []
    thread = threading.Thread(target=lambda: powers.append(gpu.health().power_watts), daemon=True)
    thread.start()
    while not rule.held:
        time.sleep(0.001)
    assert powers == []
    machine.control.release(rule)
    thread.join(10)
    assert powers == [77.67]


@issue("NVIDIA/NVSentinel#1748")
def a_driver_that_is_slow_under_load_is_read_again_after_it(make: Make) -> None:
    machine = make(H100)
    gpu = machine.gpu()
    slow = machine.control.slow("nvmlDeviceGetMemoryInfo_v2", 0.05)
    machine.control.fail("nvmlDeviceGetTotalEccErrors", 10, times=2)
    machine.control.device(0).ecc[0][0][2] = 17_657
    assert gpu.memory().total_bytes == 81559 * MIB
    assert gpu.health().ecc_errors_total == ()
    machine.control.release(slow)
    assert gpu.health().ecc_errors_total == (("corrected", 17_657.0), ("uncorrected", 0.0))


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


@issue("utkuozdemir/nvidia_gpu_exporter#65")
def what_failed_at_first_works_later(make: Make) -> None:
    machine = make(H100)
    machine.control.fail("nvmlInitWithFlags", 9, times=2)
    for _ in range(2):
        assert refusal(machine.backend.open) == ("no_driver", Remedy.RETRY)
    assert [device.memory().total_bytes for device in machine.opened()] == [81559 * MIB]


@issue(
    "utkuozdemir/nvidia_gpu_exporter#110",
    "NVIDIA/nvidia-container-toolkit#48",
    "NVIDIA/nvidia-docker#1730",
    "NVIDIA/gpu-operator#485",
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


@issue("wookayin/gpustat#35", "wookayin/gpustat#105")
def an_error_that_cannot_be_hashed_is_named_all_the_same(make: Make) -> None:
    make(H100)
    pynvml = importlib.import_module("pynvml")
    for code, reason in ((3, "not_supported"), (77, "other"), (15, "gpu_lost")):
        error = pynvml.NVMLError(code)
        with pytest.raises(TypeError, match="unhashable"):
            hash(error)
        assert read_error("nvmlFly", error).reason == reason


@issue("wookayin/gpustat#147")
def a_driver_that_was_upgraded_takes_a_new_process(make: Make) -> None:
    machine = make(H100)
    machine.control.fail("nvmlInitWithFlags", 18)
    with pytest.raises(ReadError, match=r"NVML code 18\).*the driver was upgraded") as caught:
        machine.backend.open()
    assert (caught.value.reason, caught.value.remedy) == ("version_mismatch", Remedy.REOPEN)


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
        # the driver has the second version, whatever the binding knows
        assert gpu.memory() == GpuMemory(81559.0 * MIB, 0.0, 479.0 * MIB)
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


@pytest.mark.parametrize("case", issue.values(), ids=list(issue))
def test_what_was_reported_elsewhere_does_not_happen_here(case: Case, machine: Make) -> None:
    case(machine)
