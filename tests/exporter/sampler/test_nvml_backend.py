"""The backend: opening and closing, looking again, events, and what a part that fails costs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from drill.fake_nvml import (
    A100,
    DRIVER_590,
    H100,
    H200_MIG,
    L4,
    VGPU_GUEST,
    Control,
    Feature,
    MigDevice,
    partition,
)
from exporter.gpu_sample import GpuMemory, NvLink
from exporter.sampler.backend import Backend, Event, ReadError, Remedy
from exporter.sampler.nvml import NvmlBackend
from tests.exporter.sampler.conftest import Make
from tests.exporter.sampler.issues import refusal
from tests.support.fake_library import Without

ROOT = Path(__file__).resolve().parents[3]
LEAN = """
import sys
from exporter.sampler.nvml import NvmlBackend
from exporter.sampler.pcie_meter import PcieMeter
backend = NvmlBackend()
try:
    backend.open()
except Exception as error:
    print(error.reason, error.remedy, error)
for device in backend.devices():
    meter = PcieMeter(device, window=False)
    meter.poll()
    for read in (device.memory, device.utilisation, device.link, device.nvlink, device.health, device.processes):
        read()
backend.close()
heavy = ("dataclasses", "msgspec", "logging", "asyncio", "inspect", "json")
print(sorted(set(heavy) & set(sys.modules)))
for line in open("/proc/self/status"):
    if line.startswith("VmRSS"):
        print(int(line.split()[1]))
"""


def child(environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LEAN],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_without_the_library_it_says_so_and_what_to_do(tmp_path: Path) -> None:
    """NVIDIA/dcgm-exporter#612: it ended with ERROR_LIBRARY_NOT_FOUND."""
    said = child({"LD_LIBRARY_PATH": str(tmp_path)})
    assert said[0].startswith("no_library retry nvmlInit failed with library not found (NVML code 12): ")
    assert "NVIDIA_DRIVER_CAPABILITIES=utility" in said[0]


def test_a_process_that_reads_eight_gpus_stays_lean(fake_library: Without, tmp_path: Path) -> None:
    with Control(tmp_path / "control", [H100] * 8, DRIVER_590) as control:
        imported, kilobytes = child(control.environment(fake_library()))
    assert imported == "[]"
    assert int(kilobytes) < 20 * 1024


def test_it_is_what_the_sampler_asks_for() -> None:
    backend: Backend = NvmlBackend()
    assert (backend.version, backend.expected, backend.devices(), backend.unopened()) == ("", None, (), ())
    assert refusal(lambda: backend.next_event(0)) == ("driver_lost", Remedy.REOPEN)
    backend.close()


def test_open_says_which_driver_answers_and_close_gives_all_back(machine: Make) -> None:
    made = machine(H100, A100)
    backend, control = made.backend, made.control
    assert len(made.opened()) == backend.expected == 2
    assert backend.version == "driver 590.48.01, NVML 13.590.48.01"
    gpu = made.gpu()
    freed, shut = control.watch("nvmlGpmSampleFree"), control.watch("nvmlShutdown")
    sampled = control.watch("nvmlGpmSampleGet")
    assert refusal(gpu.byte_rates) == ("no_data", Remedy.SKIP)
    backend.close()
    backend.close()
    assert (sampled.hits, freed.hits, shut.hits) == (1, 2, 1)
    assert refusal(gpu.memory) == ("driver_lost", Remedy.REOPEN)
    assert refusal(gpu.byte_rates)[1] == Remedy.REOPEN
    assert [device.memory().total_bytes > 0 for device in made.opened()] == [True, True]


def test_closing_does_not_wait_for_a_read_that_hangs(machine: Make) -> None:
    made = machine(H100)
    gpu = made.gpu()
    rule = made.control.hang("nvmlGpmSampleGet")
    thread = threading.Thread(target=lambda: refusal(gpu.byte_rates), daemon=True)
    thread.start()
    while not rule.held:
        time.sleep(0.001)
    made.backend.close()
    made.control.release(rule)
    thread.join(10)
    assert not thread.is_alive()


def test_what_is_found_later_is_opened_and_what_was_open_stays(machine: Make) -> None:
    made = machine(H100, L4)
    hidden = made.control.fail("nvmlDeviceGetHandleByIndex_v2", 4, device=1)
    (first,) = made.opened()
    assert [index for index, _ in made.backend.unopened()] == [1]
    made.control.release(hidden)
    found = made.backend.devices()
    assert found[0] is first
    assert [device.identity.name for device in found] == ["NVIDIA H100 80GB HBM3", "NVIDIA L4"]
    assert made.backend.unopened() == ()
    assert made.backend.next_event(0) is None
    made.control.xid(1, 31)
    assert made.backend.next_event(1) == Event(found[1].identity.uuid, 31)


def test_a_driver_that_is_lost_while_looking_again_says_so(machine: Make) -> None:
    made = machine(H100)
    made.opened()
    made.control.fail("nvmlDeviceGetCount_v2", 1)
    assert refusal(made.backend.devices) == ("driver_lost", Remedy.REOPEN)


def test_instances_made_anew_under_their_old_names_are_read_again(machine: Make) -> None:
    made = machine(H200_MIG)
    part = made.opened()[1]
    partition(made.control.device(0), (None, None, MigDevice(1, 0, 35712, 11)))
    assert refusal(part.memory) == ("gone", Remedy.DEVICE_DOWN)
    assert made.backend.devices()[1] is part
    assert part.memory().used_bytes == 11 << 20


def test_instances_stay_where_they_cannot_be_looked_for_just_now(machine: Make) -> None:
    made = machine(H200_MIG)
    before = made.opened()
    made.control.fail("nvmlDeviceGetMigMode", 999, times=1)
    assert made.backend.devices() == before
    assert made.backend.unopened() == ()


def test_xids_of_the_others_are_heard_after_a_gpu_was_lost(machine: Make) -> None:
    made = machine(H100, A100)
    made.opened()
    made.control.lose(0)
    assert made.backend.next_event(0.01) is None
    made.control.xid(1, 48)
    assert made.backend.next_event(1) == Event(made.gpu(1).identity.uuid, 48)
    assert made.backend.next_event(0.01) is None


def test_where_all_gpus_are_lost_it_waits_in_peace(machine: Make) -> None:
    made = machine(H100)
    made.opened()
    made.control.lose(0)
    asked = made.control.watch("nvmlEventSetCreate")
    for _ in range(5):
        assert made.backend.next_event(0.002) is None
    assert asked.hits <= 6
    made.control.find(0)
    assert made.backend.next_event(0.002) is None
    made.control.xid(0, 79)
    assert made.backend.next_event(1) == Event(made.gpu().identity.uuid, 79)


def test_a_set_that_says_lost_again_and_again_is_no_reason_to_ask_without_a_pause(machine: Make) -> None:
    """20,000 times a second, before: a driver that takes a lost GPU into each new set."""
    made = machine(H100, A100)
    made.opened()
    made.control.fail("nvmlEventSetWait_v2", 15)
    began = time.monotonic()
    for _ in range(4):
        assert made.backend.next_event(0.02) is None
    assert time.monotonic() - began >= 4 * 0.02


def test_where_no_gpu_tells_of_xids_there_is_no_use_in_waiting(machine: Make) -> None:
    made = machine(VGPU_GUEST)
    made.opened()
    assert refusal(lambda: made.backend.next_event(0.01)) == ("not_supported", Remedy.DROP)


def test_a_part_that_fails_costs_itself_and_is_counted(machine: Make) -> None:
    made = machine(H100)
    gpu = made.gpu()
    made.control.fail("nvmlDeviceGetTemperature", 999, times=2)
    made.control.fail("nvmlDeviceGetPersistenceMode", 4, times=1)
    for _ in range(3):
        health = gpu.health()
        assert health.power_watts == 77.67
        assert health.persistence_mode is None
    assert health.temperature_celsius == 28
    assert set(gpu.left_out()) == {
        ("temperature", "unknown", 2.0),
        ("persistence_mode", "no_permission", 1.0),
    }


def test_what_the_driver_does_not_have_is_asked_for_once(machine: Make) -> None:
    made = machine(L4)
    gpu = made.gpu()
    made.control.device(0).features &= ~(Feature.POWER | Feature.ECC)
    asked = [made.control.watch(f"nvmlDeviceGet{what}") for what in ("PowerUsage", "TotalEccErrors")]
    for _ in range(3):
        assert gpu.health().power_watts is None
    assert [rule.hits for rule in asked] == [1, 2]
    assert gpu.left_out() == ()


def test_nvlink_is_added_up_over_links_where_the_driver_has_no_sum(machine: Make) -> None:
    made = machine(A100)
    for field in (138, 139):
        made.control.field(0, field, code=3, scope=0xFFFFFFFF)
    made.control.nvlink_traffic(0, transmit=12 * 1024 * 1000, receive=24 * 1024 * 1000)
    made.control.advance(1)
    assert made.gpu().nvlink() == NvLink(12 * 1024 * 1000, 24 * 1024 * 1000, 12, 0)


def test_nvlink_that_is_down_is_told_apart_from_none(machine: Make) -> None:
    made = machine(A100, L4)
    made.control.device(0).nvlink_active = 0b111
    nvlink = made.gpu(0).nvlink()
    assert (nvlink.links_active, nvlink.links_inactive) == (3, 9)
    assert refusal(made.gpu(1).nvlink) == ("not_supported", Remedy.DROP)


def test_a_maximum_that_a_guest_is_not_told_is_the_gpus_own(machine: Make) -> None:
    made = machine(A100)
    made.control.fail("nvmlDeviceGetMaxPcieLinkGeneration", 3)
    made.control.device(0).generation_idle = 1
    link = made.gpu().link()
    assert (link.generation, link.max_generation, link.max_width) == (1, 4, 16)


def test_a_reserved_part_that_is_in_use_already_is_taken_out(machine: Make) -> None:
    made = machine(H100)
    made.control.device(0).memory_used = 5 << 20
    apart = made.gpu().memory()
    made.control.board.reserved_in_used = 1
    assert made.gpu().memory() == apart == GpuMemory(81559.0 * (1 << 20), 5.0 * (1 << 20), 479.0 * (1 << 20))


def test_recovery_is_told_by_drivers_whose_field_ids_are_known_only(machine: Make) -> None:
    made = machine(H100)
    made.control.device(0).recovery_action = 3
    assert made.gpu().health().recovery_action == 3
    made.backend.close()
    made.control.board.driver = b"700.10.01"
    assert made.gpu().health().recovery_action is None


def test_a_binding_that_breaks_is_an_error_like_any_other(machine: Make) -> None:
    made = machine(H100)
    made.control.device(0).name = b"\xff\xfe"
    (gpu,) = made.opened()
    assert gpu.identity.name == ""
    made.backend.close()
    made.control.device(0).uuid = b"\xff"
    assert made.opened() == ()
    ((_, error),) = made.backend.unopened()
    assert (error.reason, error.remedy) == ("unexpected", Remedy.RETRY)
    assert isinstance(error, ReadError)
