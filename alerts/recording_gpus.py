"""What of GPUs alerts and boards share: there are eight times as many as engines, and each is joined with its own."""

from __future__ import annotations

from alerts.conditions import Compare, OnGpus, Reading, Rendering
from alerts.pack.promql import by
from alerts.recording import Recording, RecordingGroup
from exporter.derive.attribution import SWAP_SHARE
from exporter.derive.pcie import PCIE_SATURATION

SATURATED = OnGpus(
    Compare(Reading(PCIE_SATURATION), ">", "pcie_saturation_ratio"),
    record=f"cluster_engine:{PCIE_SATURATION.full_name}_above:max",
)
"""Engines of which a PCIe link is full."""


def _by_swap(rendering: Rendering) -> str:
    """Of engines at the line alone: all of next to nothing is a share of 1 too."""
    on = by(rendering, SATURATED.scope.labels)
    shares = f"max_over_time({SWAP_SHARE.full_name}{rendering.matchers()}[{rendering.lookback}])"
    return f"max by ({by(rendering, ())}) (max by ({on}) ({shares}) and on ({on}) {SATURATED.record})"


BY_SWAP = Recording(
    f"cluster:{SWAP_SHARE.full_name}_above:max",
    "The largest share of PCIe bytes that swap has on an engine with a link above `pcie_saturation_ratio`; absent while"
    " there is none.",
    _by_swap,
    (),
)
GPUS = RecordingGroup(
    (
        Recording(
            SATURATED.record,
            "1 for each engine with a GPU whose PCIe link is above `pcie_saturation_ratio`; absent for others.",
            SATURATED.joined,
            SATURATED.scope.labels,
        ),
        BY_SWAP,
    ),
    every_seconds=30,
)
