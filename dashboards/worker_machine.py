"""Rows of the Worker board about what is around the engine: swap, PCIe, GPUs, KV events, probe, gateways."""

from __future__ import annotations

from dashboards.context import Context
from dashboards.panels import Visual, time_series
from dashboards.queries import Expression, Look
from dashboards.shape import Query, Unit, above, beyond
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.attribution import SWAP_SHARE, UNEXPLAINED
from exporter.derive.collectives import COLLECTIVE_DROP, COLLECTIVE_RATE
from exporter.derive.gateway import INFLIGHT, PENDING, REJECT_P99, REQUESTS, UPSTREAM_INFLIGHT
from exporter.derive.gpu_health import POWER, TEMPERATURE, THROTTLE, XID_ERRORS
from exporter.derive.gpu_load import GPU_BUSY, GPU_MEMORY_BANDWIDTH, GPU_SM_ACTIVE
from exporter.derive.gpu_memory import GPU_MEMORY_TOTAL, GPU_MEMORY_USED
from exporter.derive.kv_events import LOST, REMOVALS_RATE, RESTORE_RATIO, STORES_RATE
from exporter.derive.nvlink import NVLINK_RATE
from exporter.derive.orphans import ORPHAN_KV, ORPHANS
from exporter.derive.pcie import PCIE_DOWNGRADED, PCIE_LINK, PCIE_RATE, PCIE_SATURATION
from exporter.derive.probe import LONGEST_STEP, OVERHEAD, REPEATS, SEQUENCE_BLOCKS, STEPS, TOKENS_BETWEEN
from exporter.derive.starvation import STARVED
from exporter.derive.swap import RECIPROCITY, SWAP_BYTES_RATE, SWAP_ESTIMATE, SWAP_TIER_USED, SWAPPED
from exporter.signal import Signal

RANK, GPU = "rank {{rank}}", "{{uuid}}"
_DIRECTIONS = (("in", "to the GPU"), ("out", "to the host"))


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
            *(Query(busiest(PCIE_RATE, name), said) for name, said in _DIRECTIONS),
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
            *(Query(busiest(PCIE_SATURATION, name), said) for name, said in _DIRECTIONS),
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
                look.of_engines(look.increase(XID_ERRORS).across("sum", "uuid")).across("sum"),
                "XIDs",
                unit=Unit.COUNT,
                right=True,
            ),
            do="docs/runbooks/GpuXid.md, docs/runbooks/GpuLost.md.",
            size=(12, 7),
        ),
    )


def kv_events(look: Look) -> tuple[Visual, ...]:
    """Churn of the prefix cache."""
    return (
        time_series(
            "Blocks stored and removed a second",
            Unit.PER_SECOND,
            Query(look.gauge(STORES_RATE, peak=True), f"{RANK} stored, {{{{medium}}}}"),
            Query(look.gauge(REMOVALS_RATE, peak=True), f"{RANK} removed, {{{{medium}}}}"),
            do="As many removed as stored: the cache is as large as what asks for it.",
        ),
        time_series(
            "Blocks stored again within a minute",
            Unit.RATIO,
            Query(look.gauge(RESTORE_RATIO), RANK),
            Query(look.rate(LOST), f"{RANK} batches lost", unit=Unit.PER_SECOND, right=True),
            do="High: what is thrown out is asked for again. Where batches are lost it is a floor.",
            most=1,
        ),
    )


def probe(look: Look) -> tuple[Visual, ...]:
    """What only the engine itself can tell."""
    return (
        time_series(
            "Preemptions of sequences that were preempted before",
            Unit.PER_SECOND,
            Query(look.rate(REPEATS), RANK),
            Query(
                look.gauge(TOKENS_BETWEEN, over="min"), f"{RANK} tokens between", unit=Unit.COUNT, right=True
            ),
            do="Exact ping-pong. Few tokens between: clamp what comes.",
            size=(8, 8),
        ),
        time_series(
            "Scheduler",
            Unit.PER_SECOND,
            Query(look.rate(STEPS), f"{RANK} steps"),
            Query(look.gauge(LONGEST_STEP, peak=True), f"{RANK} longest", unit=Unit.SECONDS, right=True),
            do="A long step is a prefill that isn't chunked, or a copy.",
            size=(8, 8),
        ),
        time_series(
            "Blocks that sequences hold, and what the probe costs",
            Unit.COUNT,
            Query(look.gauge(SEQUENCE_BLOCKS), f"{RANK} blocks"),
            Query(look.gauge(OVERHEAD), f"{RANK} of step time", unit=Unit.RATIO, right=True),
            do="More blocks in use than sequences hold: the rest is prefix cache, or leaked.",
            size=(8, 8),
        ),
    )


def gateways(context: Context) -> tuple[Visual, ...]:
    """All that are read: which of them sends to this engine isn't told."""
    look, lines = context.look(), context.lines
    return (
        time_series(
            "Answers by outcome",
            Unit.PER_SECOND,
            Query(look.rate(REQUESTS).across("sum", "gateway", "outcome"), "{{gateway}} {{outcome}}"),
            do="client_left and timeout: clients wait too long. rejected, overflow: limits at work.",
            size=(8, 8),
        ),
        time_series(
            "Attempts for an answer",
            Unit.TIMES,
            Query(look.gauge(AMPLIFICATION), "{{gateway}}"),
            Query(look.gauge(REJECT_P99), "{{gateway}} time to refuse, p99", unit=Unit.SECONDS, right=True),
            do="docs/runbooks/RetryStorm.md.",
            lines=above(bad=lines.retry_amplification_ratio),
            size=(8, 8),
        ),
        time_series(
            "In flight, and held for nobody",
            Unit.COUNT,
            Query(look.gauge(INFLIGHT), "{{gateway}} of clients"),
            Query(look.gauge(UPSTREAM_INFLIGHT), "{{gateway}} to engines"),
            Query(look.gauge(PENDING), "{{gateway}} pending", dashed=True),
            Query(look.gauge(ORPHANS), "{{gateway}} orphans", color="red"),
            Query(look.gauge(ORPHAN_KV), "{{gateway}} of KV", unit=Unit.RATIO, right=True),
            do="Orphans: something swallows disconnects, docs/runbooks/OrphanedKv.md.",
            size=(8, 8),
        ),
    )
