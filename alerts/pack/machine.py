"""The machine under an engine: its PCIe links, its collectives, its GPUs."""

from __future__ import annotations

from alerts.alert import Alert, Expression, Severity
from alerts.causes import Cause
from alerts.conditions import All, Compare, Reading, Rendering, Unless
from alerts.pack.explaining import CAPACITY_GONE_WITH_GPUS, KEPT_SECONDS
from alerts.pack.promql import risen
from alerts.pack.wording import AN_ENGINE, PERCENT
from alerts.recording_gpus import BY_SWAP, DOWNGRADED, LOST, SATURATED
from exporter.derive.collectives import COLLECTIVE_DROP
from exporter.derive.gpu_health import XID_ERRORS
from exporter.derive.swap import SWAPPED

PCIESATURATED_BY_SWAP = Alert(
    "PcieSaturatedBySwap",
    Severity.WARNING,
    Cause.OFFLOAD_THRASH,
    All(SATURATED, BY_SWAP),
    "{{ $labels.engine }}: a PCIe link is full, and of swapping",
    "A GPU's link to its host is at what it can carry, and most of that is KV blocks on their way.",
    quiet_under=("KvOffloadThrash", "KvSequencesSwapped", "EngineDown"),
)
PCIESATURATED_BY_OTHERS = Alert(
    "PcieSaturatedByOthers",
    Severity.WARNING,
    Cause.PCIE_OTHER_TENANT,
    Unless(Unless(SATURATED, BY_SWAP), Compare(Reading(SWAPPED), ">", "swapped_sequences")),
    "{{ $labels.engine }}: a PCIe link is full, and not of its swapping",
    "A GPU's link to its host is at what it can carry, with bytes that the engine doesn't account for: somebody else's,"
    " or all-reduces where there is no NVLink.",
)
PCIE_LINK_DOWNGRADED = Alert(
    "PcieLinkDowngraded",
    Severity.WARNING,
    Cause.PCIE_DOWNGRADED,
    DOWNGRADED,
    "GPU {{ $labels.uuid }} runs its PCIe link below what it can",
    "Fewer lanes or a lower generation than GPU and slot can do: a bad contact, a riser, a BIOS setting.",
    for_seconds=120,
    quiet_under=("GpuLost",),
)
COLLECTIVES_SLOW = Alert(
    "CollectivesSlow",
    Severity.WARNING,
    Cause.COLLECTIVE_SLOW,
    Compare(Reading(COLLECTIVE_DROP), ">", "collective_drop_ratio"),
    f"{AN_ENGINE}: its GPUs exchange {PERCENT} less than usual",
    "The all-reduces of the engine carry less than they did with as many sequences: NVLink, topology or throttling.",
    quiet_under=("EngineDown", "EngineFrozen"),
)
GPU_LOST = Alert(
    "GpuLost",
    Severity.WARNING,
    Cause.GPU_LOST,
    LOST,
    "GPU {{ $labels.uuid }} is lost",
    "The driver says that this GPU is gone or ill: it fell off the bus, or needs a reset. One that merely can't be"
    " read, because the driver hangs, is SidecarBlind's. Where such GPUs take much of the fleet along,"
    " CapacityGoneWithGpus pages.",
    for_seconds=30,
    keep_firing_seconds=KEPT_SECONDS,
    consequence_of=(CAPACITY_GONE_WITH_GPUS,),
)


def _xids(rendering: Rendering) -> str:
    return risen(rendering, XID_ERRORS, ("uuid", "xid"), "15m")


GPU_XID = Alert(
    "GpuXid",
    Severity.WARNING,
    Cause.GPU_LOST,
    Expression(_xids, ("uuid", "xid")),
    "GPU {{ $labels.uuid }} reported XID {{ $labels.xid }}",
    "The driver logged an error of this GPU within the last 15 minutes. NVIDIA's list says what its number means.",
    for_seconds=0,
    keep_firing_seconds=0,
    quiet_under=("GpuLost",),
)
MACHINE = (
    PCIESATURATED_BY_SWAP,
    PCIESATURATED_BY_OTHERS,
    PCIE_LINK_DOWNGRADED,
    COLLECTIVES_SLOW,
    GPU_LOST,
    GPU_XID,
)
