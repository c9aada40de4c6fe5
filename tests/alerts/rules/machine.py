"""Trials of ``alerts/pack/machine.py``."""

from __future__ import annotations

from exporter.derive.attribution import SWAP_SHARE
from exporter.derive.collectives import COLLECTIVE_DROP
from exporter.derive.gpu_health import XID_ERRORS
from exporter.derive.inventory import ENGINE_GPU_INFO, GPU_DOWN_INFO, GPU_UP
from exporter.derive.pcie import PCIE_DOWNGRADED, PCIE_SATURATION
from exporter.derive.swap import SWAPPED
from tests.alerts.rules.trials import Fires, Quiet, Told

_IN = (("direction", "in"),)
_OWNED = tuple(
    Told(ENGINE_GPU_INFO, 1, 1, (("uuid", f"GPU-{{cluster}}-{{engine}}-{index}"),)) for index in (0, 1)
)
_FULL_LINK = Told(PCIE_SATURATION, 0.1, 0.97, _IN)
_XID = (("xid", "79"),)


def _lost(reason: str) -> tuple[Told, ...]:
    return Told(GPU_UP, 1, 0), Told(GPU_DOWN_INFO, None, 1, (("reason", reason),))


TRIALS = (
    Fires(
        "PcieSaturatedBySwap",
        "a link full of blocks",
        (*_OWNED, _FULL_LINK, Told(SWAP_SHARE, 0, 0.9, _IN)),
        "a: a PCIe link is full, and of swapping",
    ),
    Quiet(
        "PcieSaturatedBySwap",
        "blocks on an idle link",
        (*_OWNED, Told(PCIE_SATURATION, 0.1, 0.3, _IN), Told(SWAP_SHARE, 0, 0.9, _IN)),
    ),
    Quiet(
        "PcieSaturatedBySwap",
        "another engine's blocks",
        (*_OWNED, _FULL_LINK, Told(SWAP_SHARE, 0, 0.9, _IN, at={"cluster": "east", "engine": "b"})),
    ),
    Quiet(
        "PcieSaturatedBySwap",
        "another cluster's engine of the same name",
        (*_OWNED, _FULL_LINK, Told(SWAP_SHARE, 0, 0.9, _IN, at={"cluster": "west", "engine": "a"})),
    ),
    Fires(
        "PcieSaturatedByOthers",
        "a link full of what nobody accounts for",
        (*_OWNED, _FULL_LINK, Told(SWAP_SHARE, 0, 0.02, _IN)),
        "a: a PCIe link is full, and not of its swapping",
    ),
    Quiet("PcieSaturatedByOthers", "its own blocks", (*_OWNED, _FULL_LINK, Told(SWAP_SHARE, 0, 0.9, _IN))),
    Quiet("PcieSaturatedByOthers", "V0 swaps and counts none", (*_OWNED, _FULL_LINK, Told(SWAPPED, 0, 3))),
    Fires(
        "PcieLinkDowngraded",
        "fewer lanes than it can",
        (Told(PCIE_DOWNGRADED, 0, 1),),
        "GPU GPU-east-a-1 runs its PCIe link below what it can",
    ),
    Quiet("PcieLinkDowngraded", "not known", (Told(PCIE_DOWNGRADED, 0, None), Told(GPU_UP, 1, 1))),
    Fires(
        "CollectivesSlow",
        "far less than usual",
        (Told(COLLECTIVE_DROP, 0, 0.82),),
        "a: its GPUs exchange 82% less than usual",
    ),
    Quiet("CollectivesSlow", "a little less", (Told(COLLECTIVE_DROP, 0, 0.2),)),
    Fires("GpuLost", "off the bus", _lost("gpu_lost"), "GPU GPU-east-a-1 is lost"),
    Quiet("GpuLost", "a call that doesn't come back", _lost("hung")),
    Quiet("GpuLost", "numbers that stand still", _lost("stale")),
    Fires(
        "GpuXid",
        "the first of its number",
        (Told(XID_ERRORS, None, 1, _XID, after=1, raw=True),),
        "GPU GPU-east-a-1 reported XID 79",
        ends_within_seconds=15 * 60,
        labels={"xid": "79"},
    ),
    Fires(
        "GpuXid",
        "one more of a number",
        (Told(XID_ERRORS, 4, 5, _XID, after=5, raw=True),),
        "GPU GPU-east-a-1 reported XID 79",
        calm_seconds=30 * 60,
        step=60,
        ends_within_seconds=15 * 60,
        labels={"xid": "79"},
    ),
    Fires(
        "GpuXid",
        "one after the sidecar began anew, which counts from nothing",
        (Told(XID_ERRORS, 4, (None, None, 1), _XID, after=1, raw=True),),
        "GPU GPU-east-a-1 reported XID 79",
        calm_seconds=30 * 60,
        step=60,
        within_seconds=180,
        ends_within_seconds=15 * 60,
        labels={"xid": "79"},
    ),
    Quiet(
        "GpuXid",
        "a number counted long ago stays on the page",
        (Told(XID_ERRORS, 3, 3, _XID, raw=True),),
        calm_seconds=30 * 60,
        step=60,
        from_seconds=16 * 60,
    ),
)
