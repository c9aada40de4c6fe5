"""Everything that goes wrong with a driver shows as the real library shows it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from drill.fake_nvml import (
    ANY_FUNCTION,
    DRIVER_470,
    GB10,
    H100,
    H200_MIG,
    L4,
    PROFILES,
    T4,
    VGPU_GUEST,
    Feature,
    MigDevice,
    Profile,
    partition,
)
from tests.drill.fake_nvml.conftest import Machine

MIB = 1 << 20
PATIENCE_SECONDS = 30.0
"""What anything may take on a busy machine."""
XID_SET = (
    "[(s := nvmlEventSetCreate()), nvmlDeviceRegisterEvents(gpu({}), nvmlEventTypeXidCriticalError, s)][1]"
)

# a call that each ability answers
ASKS = {
    Feature.MEMORY: "nvmlDeviceGetMemoryInfo(gpu(0))",
    Feature.UTILIZATION: "nvmlDeviceGetUtilizationRates(gpu(0))",
    Feature.PCIE_THROUGHPUT: "nvmlDeviceGetPcieThroughput(gpu(0), 0)",
    Feature.PCIE_LINK: "nvmlDeviceGetMaxPcieLinkGeneration(gpu(0))",
    Feature.GPM: "sample(gpu(0))",
    Feature.CLOCK_REASONS: "nvmlDeviceGetCurrentClocksEventReasons(gpu(0))",
    Feature.ECC: "nvmlDeviceGetTotalEccErrors(gpu(0), 0, 0)",
    Feature.REMAPPED_ROWS: "nvmlDeviceGetRemappedRows(gpu(0))",
    Feature.EVENTS: XID_SET.format(0),
    Feature.PROCESSES: "nvmlDeviceGetComputeRunningProcesses(gpu(0))",
    Feature.SAMPLES: "nvmlDeviceGetSamples(gpu(0), 0, 0)",
    Feature.POWER: "nvmlDeviceGetPowerUsage(gpu(0))",
    Feature.NVLINK: "nvmlDeviceGetNvLinkState(gpu(0), 0)",
}
FIELDS = {Feature.PCIE_COUNTERS: 197, Feature.MEMORY_TEMPERATURE: 82}


def test_each_ability_has_its_call() -> None:
    assert set(Feature) == {*ASKS, *FIELDS}


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_a_gpu_answers_what_it_can_and_says_not_supported_to_the_rest(
    profile: Profile, machine: Machine
) -> None:
    _, call = machine(profile)
    for feature, text in ASKS.items():
        if feature in profile.features:
            call(text)
        else:
            assert call.refusal(text) == ("NVMLError_NotSupported", 3), text
    for feature, field in FIELDS.items():
        assert call.fields(field)[0]["code"] == (0 if feature in profile.features else 3), field
    assert call("nvmlGpmQueryDeviceSupport(gpu(0))")["isSupportedDevice"] == (Feature.GPM in profile.features)


def test_profiles_lack_what_their_hardware_lacks(machine: Machine) -> None:
    _, call = machine(GB10, T4, L4, VGPU_GUEST)
    assert call.refusal("nvmlDeviceGetMemoryInfo(gpu(0), version=nvmlMemory_v2)")[1] == 3
    assert call.refusal("nvmlDeviceGetRemappedRows(gpu(1))")[1] == 3
    assert [field["code"] for field in call.fields(82, 197, device=2)] == [3, 0]
    assert call("nvmlDeviceGetUtilizationRates(gpu(3))") == {"gpu": 0, "memory": 0}
    assert call.refusal("nvmlDeviceGetSerial(gpu(3))")[1] == 3


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (4, "NVMLError_NoPermission"),
        (9, "NVMLError_DriverNotLoaded"),
        (18, "NVMLError_LibRmVersionMismatch"),
        (999, "NVMLError_Unknown"),
    ],
)
def test_initialisation_fails_and_works_later(code: int, name: str, machine: Machine) -> None:
    control, call = machine(H100, init=False)
    control.fail("nvmlInitWithFlags", code, times=2)
    assert [call.refusal("nvmlInit()") for _ in range(2)] == [(name, code)] * 2
    call("nvmlInit()")
    assert call("nvmlDeviceGetCount()") == 1


def test_without_a_block_no_driver_is_loaded(machine: Machine, tmp_path: Path) -> None:
    _, call = machine(H100, init=False)
    (tmp_path / "control").unlink()
    assert call.refusal("nvmlInit()") == ("NVMLError_DriverNotLoaded", 9)
    assert call.refusal("nvmlDeviceGetCount()") == ("NVMLError_Uninitialized", 1)


def test_errors_come_after_so_many_calls_on_the_gpu_that_has_them(machine: Machine) -> None:
    control, call = machine(H100, H100)
    rule = control.fail("nvmlDeviceGetPowerUsage", 999, device=1, after=2, times=1)
    power = "nvmlDeviceGetPowerUsage(gpu({}))"
    assert call(power.format(1)) == call(power.format(1)) == 77670
    assert call.refusal(power.format(1)) == ("NVMLError_Unknown", 999)
    assert call(power.format(1)) == call(power.format(0)) == 77670
    assert rule.hits == 4


def test_calls_can_be_counted_and_rules_ended(machine: Machine) -> None:
    control, call = machine(H100)
    watched = control.watch("nvmlDeviceGetName")
    broken = control.fail("nvmlDeviceGetName", 15)
    assert call.refusal("nvmlDeviceGetName(gpu(0))")[1] == 15
    control.release(broken)
    call("nvmlDeviceGetName(gpu(0))")
    assert watched.hits == 2
    assert control.calls >= 4
    with pytest.raises(ValueError, match="no function nvmlDeviceGetNam"):
        control.watch("nvmlDeviceGetNam")


def test_rules_that_ended_make_room_for_others(machine: Machine) -> None:
    control, call = machine(H100)
    for _ in range(200):
        control.release(control.watch("nvmlDeviceGetName"))
    everything = control.fail(ANY_FUNCTION, 999, device=0, after=1)
    call("(a := gpu(0))")
    assert [call.refusal(f"nvmlDeviceGet{what}(a)")[1] for what in ("Name", "PowerUsage")] == [999, 999]
    control.release(everything)
    for _ in range(64):
        control.watch("nvmlDeviceGetName")
    with pytest.raises(ValueError, match="64 rules are there"):
        control.watch("nvmlDeviceGetName")


def test_a_lost_gpu_says_so_to_every_call_and_the_others_go_on(machine: Machine) -> None:
    control, call = machine(H100, H100)
    call("[(a := gpu(0)), (b := gpu(1))]")
    control.lose(1)
    for text in ("nvmlDeviceGetName(b)", "nvmlDeviceGetMemoryInfo(b)", "gpu(1)"):
        assert call.refusal(text) == ("NVMLError_GpuIsLost", 15)
    assert call("nvmlDeviceGetCount()") == 2
    assert call("nvmlDeviceGetPowerUsage(a)") == 77670
    control.lose(1, gone=True)
    assert call("nvmlDeviceGetCount()") == 1
    assert call.refusal("gpu(1)") == ("NVMLError_InvalidArgument", 2)
    control.find(1)
    assert call("nvmlDeviceGetPowerUsage(b)") == 77670


def test_a_handle_from_before_a_shutdown_is_stale(machine: Machine) -> None:
    _, call = machine(H100)
    call("(old := gpu(0))")
    call("nvmlShutdown()")
    assert call.refusal("nvmlDeviceGetName(old)") == ("NVMLError_Uninitialized", 1)
    assert call.refusal("nvmlShutdown()")[1] == 1
    call("nvmlInit()")
    assert call.refusal("nvmlDeviceGetName(old)") == ("NVMLError_InvalidArgument", 2)
    assert call("nvmlDeviceGetName(gpu(0))") == H100.name


def test_a_call_can_be_slow(machine: Machine) -> None:
    control, call = machine(H100)
    control.slow("nvmlDeviceGetTemperature", 0.2)
    begun = time.monotonic()
    call("nvmlDeviceGetTemperature(gpu(0), 0)")
    assert time.monotonic() - begun >= 0.2


def state_of(process: int, thread: int) -> str:
    status = Path(f"/proc/{process}/task/{thread}/stat").read_text()
    return status.rpartition(")")[2].split()[0]


def has_ended(process: int) -> bool:
    try:
        return state_of(process, process) in {"Z", "X"}  # one that nobody collects has ended too
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize(("uninterruptible", "state"), [(False, "S"), (True, "D")])
def test_a_call_hangs_until_released_while_others_answer(
    machine: Machine, *, uninterruptible: bool, state: str
) -> None:
    control, call = machine(H100, H100)
    rule = control.hang("nvmlDeviceGetPowerUsage", 0, uninterruptible=uninterruptible)
    thread = call("begin('nvmlDeviceGetPowerUsage(gpu(0))')")
    assert call(f"outcome({thread}, 0.2)") == "hangs"
    # a sleeping thread wakes now and then to look whether it is released
    deadline = time.monotonic() + PATIENCE_SECONDS
    while state_of(call.process.pid, thread) != state:
        assert time.monotonic() < deadline, f"never in state {state}"
        time.sleep(0.003)
    assert call("nvmlDeviceGetPowerUsage(gpu(1))") == 77670
    assert rule.held == 1
    control.release(rule)
    assert call(f"outcome({thread}, {PATIENCE_SECONDS})") == {"value": 77670}
    assert call("nvmlDeviceGetPowerUsage(gpu(0))") == 77670


def test_a_process_that_hangs_in_state_d_can_be_killed(machine: Machine) -> None:
    control, call = machine(H100)
    control.hang("nvmlDeviceGetPowerUsage", uninterruptible=True)
    thread = call("begin('nvmlDeviceGetPowerUsage(gpu(0))')")
    assert call(f"outcome({thread}, 0.1)") == "hangs"
    (helper,) = map(int, Path(f"/proc/{call.process.pid}/task/{thread}/children").read_text().split())
    call.process.kill()
    assert call.process.wait(PATIENCE_SECONDS) == -9
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not has_ended(helper):
        assert time.monotonic() < deadline, "what held the thread outlived it"
        time.sleep(0.01)


def test_xid_errors_reach_the_sets_that_asked_for_them(machine: Machine) -> None:
    control, call = machine(H100, H100)
    control.xid(1, 31)
    call(XID_SET.format(1))
    wait = "nvmlEventSetWait(s, 20)"
    assert call.refusal(wait) == ("NVMLError_Timeout", 10)
    control.xid(0, 13)
    control.event(1, 0x4)
    control.xid(1, 79)
    event = call("nvmlEventSetWait(s, 1000)")
    assert (event["eventType"], event["eventData"], event["gpuInstanceId"]) == (8, 79, 0xFFFFFFFF)
    assert event["device"] == call("gpu(1)")
    assert call.refusal(wait)[1] == 10
    control.lose(1)
    assert call.refusal(wait) == ("NVMLError_GpuIsLost", 15)
    assert call.refusal("nvmlDeviceRegisterEvents(gpu(0), 0x80, s)") == ("NVMLError_NotSupported", 3)


def test_an_event_ends_a_wait_that_has_begun(machine: Machine) -> None:
    control, call = machine(H100)
    call(XID_SET.format(0))
    thread = call("begin('nvmlEventSetWait(s, 60000)')")
    assert call(f"outcome({thread}, 0.05)") == "hangs"
    control.xid(0, 48)
    assert call(f"outcome({thread}, {PATIENCE_SECONDS})")["value"]["eventData"] == 48


def test_an_old_driver_lacks_functions_and_has_their_predecessors(machine: Machine) -> None:
    control, call = machine(H100, driver=DRIVER_470)
    control.start(0, 7, MIB)
    for text in (
        "nvmlDeviceGetMemoryInfo(gpu(0), version=nvmlMemory_v2)",
        "nvmlDeviceGetCurrentClocksEventReasons(gpu(0))",
        "nvmlGpmQueryDeviceSupport(gpu(0))",
        "nvmlDeviceGetComputeRunningProcesses_v3(gpu(0))",
    ):
        assert call.refusal(text) == ("NVMLError_FunctionNotFound", 13), text
    # this one is no NVMLError: a trap in the binding
    assert call.refusal("nvmlDeviceGetComputeRunningProcesses(gpu(0))") == ("NVMLLibraryMismatchError", None)
    assert call("nvmlDeviceGetComputeRunningProcesses_v2(gpu(0))")[0]["pid"] == 7
    assert call("nvmlDeviceGetCurrentClocksThrottleReasons(gpu(0))") == 1
    assert call("nvmlDeviceGetMemoryInfo(gpu(0))")["total"] == 81559 * MIB
    assert call("nvmlSystemGetDriverVersion()") == "470.256.02"


def test_mig_devices_have_gaps_share_memory_and_answer_little(machine: Machine) -> None:
    control, call = machine(H200_MIG)
    assert call("nvmlDeviceGetMigMode(gpu(0))") == [1, 1]
    assert call("nvmlDeviceGetMaxMigDeviceCount(gpu(0))") == 7
    assert call.refusal("mig(0, 1)") == ("NVMLError_NotFound", 6)
    ids = [
        call(f"[nvmlDeviceGetGpuInstanceId(mig(0, {k})), nvmlDeviceGetComputeInstanceId(mig(0, {k}))]")
        for k in (0, 2, 3)
    ]
    assert ids == [[1, 0], [1, 1], [2, 0]]
    shared = [call(f"nvmlDeviceGetMemoryInfo(mig(0, {k}), version=nvmlMemory_v2)") for k in (0, 2)]
    assert shared[0] == shared[1]
    assert shared[0]["used"] == 16925 * MIB
    assert call("nvmlDeviceGetUUID(mig(0, 3))").startswith("MIG-")
    assert call("nvmlDeviceIsMigDeviceHandle(mig(0, 0))") == 1
    for text in ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetMaxPcieLinkWidth"):
        assert call.refusal(f"{text}(mig(0, 0))") == ("NVMLError_NotSupported", 3)
    control.start(0, 99, MIB, instance=(1, 1))
    listed = [call(f"nvmlDeviceGetComputeRunningProcesses(mig(0, {k}))") for k in (0, 2)]
    assert [len(one) for one in listed] == [0, 1]
    call("(old := mig(0, 3))")
    partition(control.device(0), (MigDevice(5, 0, 71424),))
    assert call("nvmlDeviceGetGpuInstanceId(mig(0, 0))") == 5
    assert call.refusal("nvmlDeviceGetMemoryInfo(old)")[1] == 2


def test_gpm_of_a_mig_parent_is_taken_by_instance(machine: Machine) -> None:
    control, call = machine(H200_MIG)
    call("[(a := nvmlGpmSampleAlloc()), (b := nvmlGpmSampleAlloc()), nvmlGpmMigSampleGet(gpu(0), 2, a)]")
    control.advance(1)
    call("nvmlGpmMigSampleGet(gpu(0), 2, b)")
    assert call("metrics(a, b, 20)")[0][0] == 0
    assert call.refusal("nvmlGpmMigSampleGet(gpu(0), 9, a)") == ("NVMLError_InvalidArgument", 2)
