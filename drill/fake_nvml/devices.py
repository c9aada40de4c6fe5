"""Fills the control block's GPUs with what their profiles say."""

from __future__ import annotations

from drill.fake_nvml.block import Instance
from drill.fake_nvml.board import Device
from drill.fake_nvml.profiles import MigDevice, Profile

MIB = 1 << 20
_FIRST_BUS = 0x19
_ECC_EVENTS = 0x1 | 0x2
_EVENTS = 0x4 | 0x8 | 0x10
"""nvmlEventType: P-state, XID, clock."""
_IDLE = 0x1
"""nvmlClocksEventReasonGpuIdle."""


def furnish(device: Device, index: int, profile: Profile) -> None:
    """Make ``device`` an idle GPU of this kind, the ``index``-th of its machine."""
    device.name = profile.name.encode()
    device.uuid = f"GPU-00000000-0000-0000-0000-{index:012d}".encode()
    device.serial = f"16551240{index:05d}".encode() if profile.serial else b""
    device.bus_id = f"00000000:{_FIRST_BUS + index:02X}:00.0".encode()
    device.features = profile.features
    device.architecture, device.minor = profile.architecture, index
    device.virtualization, device.persistence = profile.virtualization, 1
    device.generation_max = device.generation_gpu_max = profile.generation
    device.generation_idle = profile.idle_generation or profile.generation
    device.width_max = device.width_current = profile.width
    device.temperature = device.memory_temperature = profile.temperature
    device.power_mw = profile.power_mw
    device.ecc_enabled = profile.ecc
    device.nvlink_count, device.nvlink_version = profile.nvlinks, profile.nvlink_version
    device.nvlink_active = (1 << profile.nvlinks) - 1
    device.memory_total = profile.memory_mib * MIB
    device.memory_used = profile.used_mib * MIB
    device.memory_reserved = profile.reserved_mib * MIB
    device.bar1_total = profile.memory_mib * MIB
    device.bar1_used = min(MIB, device.bar1_total)
    device.clock_reasons = _IDLE
    device.event_types = _EVENTS | (_ECC_EVENTS if profile.ecc else 0)
    if profile.mig is not None:
        partition(device, profile.mig)


def partition(device: Device, mig: tuple[MigDevice | None, ...]) -> None:
    """Cut a GPU into MIG devices, live too: their UUIDs follow from the instances' ids."""
    if len(mig) > len(device.instances):
        raise ValueError(f"{len(mig)} MIG devices asked for: a GPU holds {len(device.instances)}")
    for index, made in enumerate(mig):
        # an empty UUID marks a gap
        device.instances[index] = Instance() if made is None else _instance(device, made)
    device.instance_count = len(mig)
    device.mig_enabled = 1


def _instance(device: Device, made: MigDevice) -> Instance:
    whole = device.uuid.decode().removeprefix("GPU-")
    return Instance(
        uuid=f"MIG-{whole}-{made.gpu_instance}-{made.compute_instance}".encode(),
        gpu_instance=made.gpu_instance,
        compute_instance=made.compute_instance,
        memory_total=made.memory_mib * MIB,
        memory_used=made.used_mib * MIB,
    )
