"""Links of the Incident board from what is asked for to what is thrown out: memory, and the way to the host."""

from __future__ import annotations

from dashboards.context import Context
from dashboards.incident_link import MORE, OTHER, TYPICAL, WORST, Pair, count, pair
from dashboards.queries import Look
from dashboards.shape import NEUTRAL, Query, Unit, above, beyond, proven
from dashboards.wording import DIRECTIONS
from exporter.derive.attribution import SWAP_SHARE
from exporter.derive.blocks import KV_USAGE
from exporter.derive.headroom import DEMAND
from exporter.derive.pcie import PCIE_SATURATION
from exporter.derive.pingpong import PINGPONG
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING, WASTED_WORK
from exporter.derive.swap import SWAP_BYTES_RATE, SWAP_ESTIMATE, SWAPPED
from exporter.derive.traffic import SEQUENCES


def demand(context: Context, look: Look, place: int) -> Pair:
    """What is asked for, held against what there is: it leads all else."""
    demand = look.gauge(DEMAND)
    waiting = look.gauge(SEQUENCES, where=(("state", "waiting"),)).across("sum")
    return pair(
        place,
        "KV asked for, of what there is",
        Unit.TIMES,
        (
            Query(demand.across("max"), context.legend(said="most"), decimals=1),
            Query(waiting, context.legend(said="waiting"), unit=Unit.WHOLE, lines=(NEUTRAL,)),
        ),
        (
            Query(demand.across("max"), context.legend(said="most"), color=WORST),
            Query(demand.quantile(0.5), context.legend(said="median engine"), color=TYPICAL),
            Query(waiting, context.legend(said="waiting"), unit=Unit.COUNT, color=MORE, right=True),
        ),
        do="Above 1 somebody has to wait. Clamp the gateway early: docs/runbooks/actions.md.",
        lines=above(bad=context.lines.kv_demand_ratio),
    )


def cache(context: Context, look: Look, place: int) -> Pair:
    """How full the pool is: at what it can hold, each new block takes one from somebody."""
    usage, full = look.gauge(KV_USAGE, peak=True), context.lines.kv_usage_full_ratio
    return pair(
        place,
        "KV cache in use",
        Unit.RATIO,
        (
            Query(usage.across("max"), context.legend(said="fullest"), decimals=0),
            count(context, usage.across("max", "engine").compared(">=", full), "engines full"),
        ),
        (
            Query(usage.across("max"), context.legend(said="fullest"), color=WORST),
            Query(usage.quantile(0.5), context.legend(said="median engine"), color=TYPICAL),
            Query(
                usage.across("max", "engine").compared(">=", full).across("sum"),
                context.legend(said="engines full"),
                unit=Unit.COUNT,
                color=MORE,
                right=True,
                decimals=0,
            ),
        ),
        do=f"Below {context.lines.kv_usage_calm_ratio:.0%} look at compute and network instead of memory. Full"
        " and nothing red below: a busy fleet, no fault.",
        lines=above(context.lines.kv_usage_calm_ratio, full),
        most=1,
    )


def swap(context: Context, look: Look, place: int) -> Pair:
    """What is thrown out to the host, and how much is on its way."""
    swapped = look.gauge(SWAPPED, peak=True).across("sum")
    moved, estimate = look.gauge(SWAP_BYTES_RATE, peak=True), look.rate(SWAP_ESTIMATE)
    # engine by engine: where some tell and of some it is estimated, neither hides the other
    both = moved.across("sum", "engine").otherwise(estimate.across("sum", "engine")).across("sum")
    return pair(
        place,
        "Swapped out",
        Unit.COUNT,
        (
            Query(swapped, context.legend(said="sequences"), decimals=0),
            Query(both, context.legend(said="moved"), unit=Unit.BYTES_PER_SECOND, lines=(NEUTRAL,)),
        ),
        (
            Query(swapped, context.legend(said="sequences"), color=WORST),
            Query(
                moved.across("sum", "direction"),
                context.legend("direction", said="moved"),
                unit=Unit.BYTES_PER_SECOND,
                right=True,
            ),
            Query(
                estimate.across("sum"),
                context.legend(said="moved, estimate (V0)"),
                unit=Unit.BYTES_PER_SECOND,
                color=MORE,
                right=True,
            ),
        ),
        do="The invariant is that nothing is swapped. Clamp the gateway, then drain and restart with swap off:"
        " docs/runbooks/KvSequencesSwapped.md.",
        lines=beyond(context.lines.swapped_sequences),
    )


def pcie(context: Context, look: Look, place: int) -> Pair:
    """The way that it takes, and how much of that is swap."""
    limit = context.lines.pcie_saturation_ratio
    hot = look.of_engines(look.gauge(PCIE_SATURATION, peak=True).across("max", "uuid"))

    def directed(name: str, said: str, color: str) -> tuple[Query, Query]:
        """The link, and how much of it is swap: of the same engine, as all of next to nothing is a share of 1 too."""
        where = (("direction", name),)
        link = look.of_engines(look.gauge(PCIE_SATURATION, where=where, peak=True)).across("max", "engine")
        by_swap = look.gauge(SWAP_SHARE, where=where).across("max", "engine").weighed(link)
        return (
            Query(link.across("max"), context.legend(said=said), color=color),
            Query(by_swap.across("max"), context.legend(said=f"{said}, by swap"), color=color, dashed=True),
        )

    return pair(
        place,
        "PCIe, busiest link",
        Unit.RATIO,
        (
            Query(hot.across("max"), context.legend(said="of the link"), decimals=0),
            count(context, hot.across("max", "engine").compared(">", limit), "engines at the line"),
        ),
        (
            *(
                query
                for (name, said), color in zip(DIRECTIONS, (WORST, MORE), strict=True)
                for query in directed(name, said, color)
            ),
        ),
        do="At the line, and the dashed line as high: it is swap, as the link above. The dashed one low: somebody else"
        " on the machine, docs/runbooks/PcieSaturatedByOthers.md.",
        lines=above(bad=limit),
        most=1,
    )


def ping_pong(context: Context, look: Look, place: int) -> Pair:
    """Whether what is thrown out comes back at once."""
    repeats = look.gauge(PINGPONG)
    wasted = look.gauge(WASTED_WORK)
    preempted = look.gauge(PREEMPTION_RATE).across("sum")
    limit = context.lines.repeat_preemption_ratio
    thrashing = look.gauge(THRASHING).across("max", "engine")
    return pair(
        place,
        "Ping-pong: work done twice",
        Unit.RATIO,
        (
            Query(wasted.across("max"), context.legend(said="most"), decimals=0),
            Query(
                repeats.across("max"),
                context.legend(said="preempted again, at least"),
                lines=proven(limit),
                decimals=0,
            ),
            count(context, thrashing, "engines thrash"),
        ),
        (
            Query(repeats.across("max", "method"), context.legend("method", said="repeats"), color=WORST),
            Query(wasted.across("max"), context.legend(said="work done twice"), color=OTHER),
            Query(
                preempted,
                context.legend(said="preemptions"),
                unit=Unit.PER_SECOND,
                color=MORE,
                right=True,
            ),
        ),
        do="0 % means not proven, never healthy. Where most work is done twice, fewer sequences make more tokens: clamp"
        " the gateway, docs/runbooks/KvThrashing.md.",
        lines=above(bad=limit),
        most=1,
    )
