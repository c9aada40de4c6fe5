"""Rows of the Fleet board about all engines together: the room that is left, and the heat of PCIe links."""

from __future__ import annotations

import math

from alerts.recording import RecordingGroup
from alerts.recording_fleet import BLOCKS, EMPTIEST, FLEET, FULLEST, LEFT, TOKENS
from alerts.recording_links import AT_THE_LINE, BUSIEST, BY_SWAP, DOWNGRADED, LINKS
from dashboards.context import Context
from dashboards.panels import Visual, bar_gauge, time_series
from dashboards.queries import Expression, Look
from dashboards.shape import Query, Unit, above, below
from exporter.derive.attribution import SWAP_SHARE
from exporter.derive.blocks import KV_BLOCKS, KV_USAGE
from exporter.derive.headroom import HEADROOM
from exporter.derive.pcie import PCIE_DOWNGRADED, PCIE_SATURATION
from exporter.derive.traffic import GENERATION_RATE

_WORST = 10
_USUAL_SECONDS = 60
"""Between two evaluations of rules, of a Prometheus that says nothing else."""


def finest(group: RecordingGroup) -> str:
    """The least time between two points of what ``group`` records.

    A window then holds two values, though a Prometheus scrapes more often than it records, or one of them is missing.
    """
    return f"{math.ceil(2 * (group.every_seconds or _USUAL_SECONDS) / 60)}m"


def room(context: Context, look: Look) -> tuple[Visual, ...]:
    """What the whole fleet holds, can still take, and makes."""

    def blocks(state: str) -> Expression:
        return look.recorded(BLOCKS, KV_BLOCKS, where=(("state", state),)).across("sum")

    return (
        time_series(
            "KV cache in use",
            Unit.RATIO,
            Query(look.recorded(FULLEST, KV_USAGE).across("max"), context.legend(said="fullest")),
            Query(blocks("used").over(blocks("total")), context.legend(said="all of it")),
            Query(
                look.recorded(EMPTIEST, KV_USAGE, over="min").across("min"), context.legend(said="emptiest")
            ),
            do="Far apart: the router doesn't spread requests by what they hold.",
            lines=above(context.lines.kv_usage_calm_ratio, context.lines.kv_usage_full_ratio),
            size=(8, 8),
            most=1,
            finest=finest(FLEET),
        ),
        time_series(
            "Tokens of KV that are left",
            Unit.COUNT,
            Query(look.recorded(LEFT, HEADROOM, over="min").across("sum"), context.legend()),
            do="Below 0 the fleet has accepted more than it can hold: admit less, or add engines.",
            lines=below(0),
            size=(8, 8),
            least=None,
            finest=finest(FLEET),
        ),
        time_series(
            "Tokens generated a second",
            Unit.COUNT,
            Query(look.recorded(TOKENS, GENERATION_RATE, over="avg").across("sum"), context.legend()),
            do="Falls while more sequences run: work is thrown away somewhere.",
            size=(8, 8),
            finest=finest(FLEET),
        ),
    )


def heat(context: Context, look: Look) -> tuple[Visual, ...]:
    """PCIe links: how busy, by whom, and whose."""
    limit = context.lines.pcie_saturation_ratio
    fuller = look.gauge(PCIE_SATURATION, peak=True).across("max", "uuid")
    return (
        time_series(
            "Busiest link",
            Unit.RATIO,
            Query(
                look.recorded(BUSIEST, PCIE_SATURATION).across("max", "direction"),
                context.legend("direction"),
            ),
            Query(
                look.recorded(BY_SWAP, SWAP_SHARE),
                context.legend(said="by swap, of all on an engine at the line"),
                dashed=True,
            ),
            do="At the line: the bars say whose links. Mostly by swap: clamp what comes there. Not: somebody else on"
            " the machine, docs/runbooks/PcieSaturatedByOthers.md.",
            lines=above(bad=limit),
            most=1,
            finest=finest(LINKS),
        ),
        time_series(
            "Engines with links at the line, and links that lost lanes",
            Unit.COUNT,
            Query(look.recorded(AT_THE_LINE, PCIE_SATURATION), context.legend(said="at the line")),
            Query(look.recorded(DOWNGRADED, PCIE_DOWNGRADED), context.legend(said="downgraded")),
            do="One machine's: its neighbours or its slots. All: swap or offload. docs/runbooks/PcieLinkDowngraded.md.",
            finest=finest(LINKS),
        ),
        bar_gauge(
            "Engines with the busiest links",
            Unit.RATIO,
            Query(look.of_engines(fuller).across("max", "engine").ranked(_WORST), context.legend("engine")),
            do="Click for the engine's own board.",
            lines=above(bad=limit),
            size=(24, 12),
            most=1,
            links=(context.to_worker(),),
        ),
    )
