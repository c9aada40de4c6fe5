"""What of an engine's GPUs alerts share: there are eight times as many of them, and each is joined with its engine."""

from __future__ import annotations

from alerts.conditions import Compare, OnGpus, Reading, Recorded
from alerts.recording import RecordingGroup, recording
from exporter.derive.pcie import PCIE_SATURATION

SATURATED = Recorded(
    OnGpus(Compare(Reading(PCIE_SATURATION), ">", "pcie_saturation_ratio")),
    f"cluster_engine:{PCIE_SATURATION.full_name}_above:max",
)
"""Engines of which a PCIe link is full."""
GPUS = RecordingGroup(
    (
        recording(
            SATURATED,
            "1 for each engine with a GPU whose PCIe link is above `pcie_saturation_ratio`; absent for others.",
        ),
    ),
    every_seconds=30,
)
