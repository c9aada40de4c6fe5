"""Somebody else on the same machine fills the PCIe links."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.conditions import leaves
from alerts.pack.machine import PCIESATURATED_BY_OTHERS
from alerts.pack.swap import KV_SEQUENCES_SWAPPED
from alerts.recording_gpus import SATURATED
from analysis.cascade.looks import alerted, compared, level
from analysis.cascade.template import Breadth, Link, Role, Template
from exporter.derive.attribution import SWAP_SHARE, UNEXPLAINED
from exporter.derive.pcie import PCIE_RATE
from exporter.derive.swap import SWAP_BYTES_RATE

PCIE_OTHER_TENANT = Template(
    Cause.PCIE_OTHER_TENANT,
    (
        Link(
            "a PCIe link was full, and not of the engine's swapping",
            alerted(PCIESATURATED_BY_OTHERS, *leaves(SATURATED)),
            Role.NECESSARY,
            least_seconds=30.0,
        ),
        Link("bytes went over PCIe that no engine accounts for", compared(UNEXPLAINED, ">", 0.0)),
        Link(
            "the engine's own swapping explains most of them",
            compared(SWAP_SHARE, ">", "pcie_swap_share_ratio"),
            Role.AGAINST,
            weight=0.8,
        ),
        Link("sequences were swapped out", alerted(KV_SEQUENCES_SWAPPED), Role.AGAINST, weight=0.5),
        Link("KV blocks were moved", compared(SWAP_BYTES_RATE, ">", 0.0), Role.AGAINST, weight=0.1),
    ),
    explains=frozenset({Cause.SLO_MISSED}),
    breadth=Breadth.ENGINE,
    starts=(level(PCIE_RATE, 1),),
    lead_seconds=60.0,
)
