"""What of an engine's GPUs alerts share: there are eight times as many of them, and each is joined with its engine."""

from __future__ import annotations

from alerts.conditions import Compare, Either, OnGpus, Reading, Recorded, Unless
from alerts.recording import RecordingGroup, recording
from exporter.derive.attribution import SWAP_SHARE
from exporter.derive.inventory import GPU_DOWN_INFO, GPU_UP, MERELY_UNREAD
from exporter.derive.pcie import PCIE_DOWNGRADED, PCIE_SATURATION

SATURATED = Recorded(
    OnGpus(Compare(Reading(PCIE_SATURATION), ">", "pcie_saturation_ratio")),
    f"cluster_engine:{PCIE_SATURATION.full_name}_above:max",
)
"""Engines of which a PCIe link is full."""
BY_SWAP = Recorded(
    Compare(Reading(SWAP_SHARE), ">", "pcie_swap_share_ratio"),
    f"cluster_engine:{SWAP_SHARE.full_name}_above:max",
)
"""Engines most of whose PCIe bytes are KV blocks on their way."""
DOWNGRADED = Recorded(
    Compare(Reading(PCIE_DOWNGRADED), ">=", 1.0), f"cluster_gpu:{PCIE_DOWNGRADED.full_name}_true:max"
)
_STALE_OR_HUNG = tuple(
    Compare(Reading(GPU_DOWN_INFO, (("reason", reason),)), ">=", 1.0) for reason in MERELY_UNREAD
)
LOST = Recorded(
    Unless(Compare(Reading(GPU_UP), "==", 0.0), Either(*_STALE_OR_HUNG)),
    f"cluster_gpu:{GPU_UP.full_name}_lost:max",
)
"""GPUs that are gone or ill, as the driver says; one that merely can't be read isn't."""
GPUS = RecordingGroup(
    (
        recording(
            SATURATED,
            "1 for each engine with a GPU whose PCIe link is above `pcie_saturation_ratio`; absent for others.",
        ),
        recording(BY_SWAP, "Share of PCIe bytes that swap has, above `pcie_swap_share_ratio`; absent below."),
        recording(DOWNGRADED, "1 for each GPU whose PCIe link lost lanes or speed; absent for others."),
    ),
    every_seconds=30,
)
LOST_NOW = RecordingGroup(
    (recording(LOST, "0 for each GPU that the driver says is gone or ill; absent for others."),),
    before="machine",
)
