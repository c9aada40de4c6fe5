"""GPUs of which nobody tells what goes over PCIe, and which setting would."""

from __future__ import annotations

from collections.abc import Iterable

from exporter.gpu_sample import GpuSample


def without_pcie_bytes(gpus: Iterable[GpuSample]) -> tuple[GpuSample, ...]:
    """Whole GPUs that can be read and have no source of PCIe bytes, as a T4; none whose source only failed."""
    return tuple(
        gpu
        for gpu in gpus
        if gpu.up
        and gpu.memory is not None
        and gpu.pcie is None
        and not gpu.identity.parent_uuid
        and not any(group == "pcie" for group, _, _ in gpu.errors_total)
    )


def hint(gpus: Iterable[GpuSample]) -> str:
    """What to do about them, as one line."""
    names = dict.fromkeys(gpu.identity.name or gpu.identity.uuid for gpu in gpus)
    return (
        f"{', '.join(names)}: the driver has neither profiling nor byte counters of PCIe; gpus.pcie_window: true"
        " measures windows of 20 ms, where it can"
    )
