"""Made-up GPUs: whole samples as a sampler would hand them over."""

from __future__ import annotations

from exporter.gpu_sample import (
    GpuHealth,
    GpuIdentity,
    GpuMemory,
    GpuSample,
    GpuUtilisation,
    NvLink,
    PcieLink,
    PcieTraffic,
)

LINK = PcieLink(generation=5, width=16, max_generation=5, max_width=16)
LINK_BYTES = 63.015e9
"""What Gen5 x16 carries, to four digits."""


def identity(index: int = 0) -> GpuIdentity:
    """The ``index``-th H100 of a node."""
    return GpuIdentity(
        uuid=f"GPU-{index:08d}-1111-2222-3333-444444444444",
        device_index=index,
        name="NVIDIA H100 80GB HBM3",
        pci_bus_id=f"00000000:{index + 1:02X}:00.0",
        driver="575.57.08",
    )


def h100(  # noqa: PLR0913 - which GPU, when, and what moved
    at: float,
    index: int = 0,
    *,
    bytes_in: float = 0.0,
    bytes_out: float = 0.0,
    nvlink_bytes: float = 0.0,
    sm_active: float = 0.6,
    reader: float = 1.0,
) -> GpuSample:
    """An H100 that tells all there is: PCIe and NVLink totals as given, the rest healthy."""
    reasons = ("sw_power_cap", "hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake", "sync_boost")
    return GpuSample(
        at=at,
        identity=identity(index),
        reader_started_at=reader,
        memory=GpuMemory(85_520_809_984.0, 70e9 + at % 7 * 1e6, 502_267_904.0),
        utilisation=GpuUtilisation(0.97, sm_active, 0.41),
        pcie=PcieTraffic("gpm", bytes_out, bytes_in, None, None, 0.0, 0.0),
        link=LINK,
        nvlink=NvLink(nvlink_bytes, nvlink_bytes, 18, 0),
        health=GpuHealth(
            temperature_celsius=61.0,
            power_watts=500.0 + at // 5 % 13,
            pcie_errors_total=(
                ("replay", 3.0),
                ("correctable", 3.0),
                ("non_fatal", 0.0),
                ("fatal", 0.0),
                ("l0_to_recovery", 12.0),
            ),
            ecc_errors_total=(("corrected", 2.0), ("uncorrected", 0.0)),
            remapped_rows=(
                ("correctable", 0.0),
                ("uncorrectable", 0.0),
                ("pending", 0.0),
                ("failed", 0.0),
            ),
            throttle_seconds_total=tuple((reason, 0.0) for reason in reasons),
            recovery_action=0,
            persistence_mode=True,
        ),
    )
