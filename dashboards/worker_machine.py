"""Rows of the Worker board about the machine under the engine: swap, PCIe, GPUs."""

from __future__ import annotations

from dashboards.context import Context
from dashboards.panels import Visual, time_series
from dashboards.queries import Expression, Look
from dashboards.shape import Query, Unit, above, beyond
from dashboards.wording import DIRECTIONS, GPU, RANK
from exporter.derive.attribution import SWAP_SHARE, UNEXPLAINED
from exporter.derive.collectives import COLLECTIVE_DROP, COLLECTIVE_RATE
from exporter.derive.gpu_health import POWER, TEMPERATURE, THROTTLE, XID_ERRORS
from exporter.derive.gpu_load import GPU_BUSY, GPU_MEMORY_BANDWIDTH, GPU_SM_ACTIVE
from exporter.derive.gpu_memory import GPU_MEMORY_TOTAL, GPU_MEMORY_USED
from exporter.derive.nvlink import NVLINK_RATE
from exporter.derive.pcie import PCIE_DOWNGRADED, PCIE_LINK, PCIE_RATE, PCIE_SATURATION
from exporter.derive.starvation import STARVED
from exporter.derive.swap import RECIPROCITY, SWAP_BYTES_RATE, SWAP_ESTIMATE, SWAP_TIER_USED, SWAPPED
from exporter.signal import Signal


def swap_and_pcie(context: Context, look: Look) -> tuple[Visual, ...]:
    """What leaves the GPU and comes back, and the link that it takes."""
    lines = context.lines

    def busiest(signal: Signal, direction: str, *, peak: bool = True) -> Expression:
        of_gpu = look.gauge(signal, where=(("direction", direction),), peak=peak)
        return look.of_engines(of_gpu).across("max")

    return (
        time_series(
            "Sequences swapped out, and how full the pool for them is",
            Unit.COUNT,
            Query(look.gauge(SWAPPED, peak=True), RANK),
            Query(look.gauge(SWAP_TIER_USED), f"{RANK} pool in use", unit=Unit.RATIO, right=True),
            do="There must be none: docs/runbooks/KvSequencesSwapped.md. V0 dies when the pool is full.",
            lines=beyond(lines.swapped_sequences),
            size=(8, 8),
        ),
        time_series(
            "Swap and offload",
            Unit.BYTES_PER_SECOND,
            Query(look.gauge(SWAP_BYTES_RATE, peak=True), f"{RANK} {{{{direction}}}}"),
            Query(look.rate(SWAP_ESTIMATE), f"{RANK} out, estimate (V0)"),
            Query(look.gauge(RECIPROCITY), f"{RANK} comes back", unit=Unit.RATIO, right=True, dashed=True),
            do="Out alone is a tier that is written through. Both ways: what is thrown out comes back at once.",
            size=(8, 8),
        ),
        time_series(
            "PCIe, busiest link of its GPUs",
            Unit.BYTES_PER_SECOND,
            *(Query(busiest(PCIE_RATE, name), said) for name, said in DIRECTIONS),
            Query(
                look.of_engines(look.gauge(PCIE_LINK, over="min")).across("min"),
                "what the link carries",
                color="red",
                dashed=True,
            ),
            do="At the dashed line nothing more fits: see whose bytes they are, below.",
            size=(8, 8),
        ),
        time_series(
            "PCIe, share of the link",
            Unit.RATIO,
            *(Query(busiest(PCIE_SATURATION, name), said) for name, said in DIRECTIONS),
            do="docs/runbooks/PcieSaturatedBySwap.md, docs/runbooks/PcieSaturatedByOthers.md.",
            lines=above(bad=lines.pcie_saturation_ratio),
            size=(8, 8),
            most=1,
        ),
        time_series(
            "PCIe, share that swap explains",
            Unit.RATIO,
            Query(look.gauge(SWAP_SHARE), "{{direction}}"),
            do="High with a busy link: swap is to blame. Low: somebody else on the machine.",
            lines=above(lines.pcie_swap_share_ratio),
            size=(8, 8),
            most=1,
        ),
        time_series(
            "PCIe, bytes that nothing explains; links that lost lanes",
            Unit.BYTES_PER_SECOND,
            Query(look.gauge(UNEXPLAINED), "{{direction}}"),
            Query(
                look.of_engines(look.gauge(PCIE_DOWNGRADED)).across("sum"),
                "links downgraded",
                unit=Unit.COUNT,
                right=True,
            ),
            do="Many: another process on the machine. Downgraded: docs/runbooks/PcieLinkDowngraded.md.",
            size=(8, 8),
        ),
    )


def gpus(look: Look) -> tuple[Visual, ...]:
    """Its GPUs: what they do, what they hold, whether they are well."""

    def each(signal: Signal, over: str = "max") -> Expression:
        return look.of_engines(look.gauge(signal, over=over))

    return (
        time_series(
            "Busy",
            Unit.RATIO,
            Query(each(GPU_SM_ACTIVE, "avg").across("avg"), "SMs active, mean"),
            Query(each(GPU_BUSY, "avg").across("avg"), "something runs, mean", dashed=True),
            Query(each(GPU_MEMORY_BANDWIDTH, "avg").across("avg"), "memory bandwidth, mean"),
            Query(look.gauge(STARVED).across("max"), "waits for PCIe, worst"),
            do="SMs idle while sequences run: the engine waits for something. For PCIe: see Swap and PCIe.",
            size=(8, 8),
            most=1,
        ),
        time_series(
            "Memory in use",
            Unit.BYTES,
            Query(each(GPU_MEMORY_USED), GPU),
            Query(each(GPU_MEMORY_TOTAL).across("min"), "there is", color="red", dashed=True),
            do="An engine takes its share at the start. What rises later is somebody else's.",
            size=(8, 8),
        ),
        time_series(
            "All-reduce",
            Unit.BYTES_PER_SECOND,
            Query(look.gauge(COLLECTIVE_RATE, over="avg"), "over NVLink"),
            Query(
                look.of_engines(look.gauge(NVLINK_RATE, peak=True).across("max", "uuid")).across("max"),
                "NVLink, busiest GPU",
                dashed=True,
            ),
            Query(look.gauge(COLLECTIVE_DROP), "less than usual", unit=Unit.RATIO, color="red", right=True),
            do="Less than usual with as many sequences: docs/runbooks/CollectivesSlow.md.",
            size=(8, 8),
        ),
        time_series(
            "Temperature and power",
            Unit.CELSIUS,
            Query(each(TEMPERATURE).across("max"), "hottest"),
            Query(each(POWER).across("max"), "most power", unit=Unit.WATTS, right=True),
            do="Hot and throttled: the machine's cooling.",
            size=(12, 7),
        ),
        time_series(
            "Throttled, and XIDs",
            Unit.RATIO,
            Query(
                look.of_engines(look.rate(THROTTLE).across("max", "uuid")).across("max"),
                "share of time throttled, worst reason",
            ),
            Query(
                look.of_engines(look.counted(XID_ERRORS).across("sum", "uuid")).across("sum"),
                "XIDs",
                unit=Unit.COUNT,
                right=True,
            ),
            do="docs/runbooks/GpuXid.md, docs/runbooks/GpuLost.md.",
            size=(12, 7),
        ),
    )
