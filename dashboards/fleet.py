"""The Fleet board: who hurts, how much, and where to look next."""

from __future__ import annotations

from collections.abc import Sequence

from alerts.alert import Severity
from alerts.recording_fleet import BLOCKS, EMPTIEST, FULLEST, LEFT, TOKENS
from alerts.recording_links import AT_THE_LINE, BUSIEST, BY_SWAP, DOWNGRADED
from alerts.recording_slo import MISSED_RATIOS
from dashboards.context import Context
from dashboards.panels import Board, Row, Visual, bar_gauge, stat, table, time_series
from dashboards.queries import Expression, Look
from dashboards.shape import CALM, NEUTRAL, Line, Query, Unit, above, below, beyond
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.attribution import SWAP_SHARE
from exporter.derive.blocks import KV_BLOCKS, KV_USAGE
from exporter.derive.gateway import REQUESTS as GATEWAY_REQUESTS
from exporter.derive.headroom import DEMAND, HEADROOM
from exporter.derive.latency import SLO_EVENTS, TOKEN_INTERVAL, TPOT_P99, TTFT_P99
from exporter.derive.pcie import PCIE_DOWNGRADED, PCIE_SATURATION
from exporter.derive.preemption import THRASHING, WASTED_WORK
from exporter.derive.swap import SWAPPED
from exporter.derive.traffic import GENERATION_RATE, SEQUENCES
from exporter.source_signals import SOURCE_UP

UID = "thrashold-fleet"
_WORST = 10
_LISTED = 20
_HOUR, _SHORT = "1h", "5m"
"""Of burn rates: the windows of the fastest alert."""
_BURN = above(1, 14.4)
_FINEST, _FINEST_BURN = "2m", "5m"
"""Between two points, of what a thousand sidecars read and of what is recorded once a minute. Nothing is lost: what is
read spans that time."""
_OBJECTIVES = (("ttft", "first tokens"), ("tpot", "pace of tokens"))


def board(context: Context) -> Board:
    """The board for these settings."""
    look = context.look()
    return Board(
        "Fleet",
        UID,
        "Who hurts: alerts, objectives, the worst engines, the room that is left, and the heat of PCIe links.",
        context.clusters(),
        (
            Row("Who hurts", (*_now(context, look), _alerts(context))),
            Row("Objectives", _objectives(context, look)),
            Row("The worst engines", (*_bars(context, look), _listed(context, look))),
            Row("The room that is left", _room(context, look)),
            Row("PCIe heat", _heat(context, look)),
            Row("Gateways", _gateways(context, look), collapsed=True),
        ),
        context.annotations(),
        since="now-6h",
    )


def _now(context: Context, look: Look) -> tuple[Visual, ...]:
    lines = context.lines
    usage = look.gauge(KV_USAGE).across("max", "engine")
    pages = context.firing((("severity", Severity.PAGE.value),)).across("count")
    return (
        stat(
            "Pages",
            Unit.COUNT,
            Query(pages, context.legend()),
            do="`ALERTS`: what somebody is woken for just now. The table says which; open the Incident board.",
            lines=above(bad=1),
        ),
        _flags(
            context,
            "Engines full",
            usage.compared(">=", lines.kv_usage_full_ratio),
            "A full pool alone is no fault: look at the engines that thrash or swap.",
            above(1),
        ),
        _flags(
            context,
            "Engines that thrash",
            look.gauge(THRASHING).across("max", "engine"),
            "They work for what they throw away. Clamp the gateway: docs/runbooks/KvThrashing.md.",
            above(bad=1),
        ),
        _flags(
            context,
            "Sequences swapped out",
            look.gauge(SWAPPED, peak=True),
            "There must be none: docs/runbooks/KvSequencesSwapped.md.",
            beyond(lines.swapped_sequences),
        ),
        _flags(
            context,
            "Sequences that wait",
            look.gauge(SEQUENCES, where=(("state", "waiting"),)),
            "Compare with the room that is left, below: waiting with room is head-of-line blocking.",
            (NEUTRAL,),
        ),
        _flags(
            context,
            "Sources that don't answer",
            look.gauge(SOURCE_UP).compared("==", 0),
            "What they tell is absent, and no alert about it fires. The Sidecar board says which and why.",
            above(bad=1),
        ),
    )


def _flags(context: Context, title: str, expression: Expression, do: str, lines: Sequence[Line]) -> Visual:
    query = Query(expression.across("sum"), context.legend())
    return stat(title, Unit.WHOLE, query, do=do, lines=lines)


def _alerts(context: Context) -> Visual:
    return table(
        "Alerts that fire",
        Query(context.firing(), ""),
        do="`ALERTS`: pages first. `thrashold alerts explain NAME` says what one means; each has a runbook.",
        columns=(
            "severity",
            "alertname",
            *context.settings.cluster_labels,
            "engine",
            "gateway",
            "uuid",
            "source",
        ),
        size=(24, 6),
        links=(),
    )


def _objectives(context: Context, look: Look) -> tuple[Visual, ...]:
    return tuple(
        time_series(
            f"Budget burnt: {said}",
            Unit.TIMES,
            *(
                Query(
                    _burnt(context, look, slo, window),
                    context.legend(said=f"over {window}"),
                    dashed=window == _SHORT,
                )
                for window in (_HOUR, _SHORT)
            ),
            do="1 is what the month's budget allows, 14.4 pages. See which engines are slow, below.",
            lines=_BURN,
            finest=_FINEST_BURN,
        )
        for slo, said in _OBJECTIVES
    )


def _burnt(context: Context, look: Look, slo: str, window: str) -> Expression:
    missed = look.recorded(MISSED_RATIOS[window], SLO_EVENTS, where=(("slo", slo),))
    return missed.times(1 / context.lines.slo_budget_ratio)


def _bars(context: Context, look: Look) -> tuple[Visual, ...]:
    lines = context.lines

    def worst(title: str, unit: Unit, expression: Expression, do: str, colors: Sequence[Line]) -> Visual:
        return bar_gauge(
            title,
            unit,
            Query(expression.across("max", "engine").ranked(_WORST), context.legend("engine")),
            do=do,
            lines=colors,
            links=(context.to_worker(),),
        )

    return (
        worst(
            "KV asked for, of what there is",
            Unit.TIMES,
            look.gauge(DEMAND),
            "Above 1 somebody has to wait there: send less to it. Click for the engine's own board.",
            above(bad=lines.kv_demand_ratio),
        ),
        worst(
            "Work done twice",
            Unit.RATIO,
            look.gauge(WASTED_WORK),
            "What was computed or moved only to be thrown out. Fewer sequences make more tokens.",
            above(0.1, 0.5),
        ),
        worst(
            "Mean gap between tokens",
            Unit.SECONDS,
            look.gauge(TOKEN_INTERVAL),
            "From 2 s on clients give up and come again.",
            above(bad=lines.token_interval_seconds),
        ),
    )


def _listed(context: Context, look: Look) -> Visual:
    slowest = look.gauge(TPOT_P99).across("max", "engine").ranked(_LISTED)
    lines = context.lines

    def column(expression: Expression, said: str, unit: Unit, colors: Sequence[Line], decimals: int) -> Query:
        chosen = expression.across("max", "engine").among(slowest)
        return Query(chosen, said, unit=unit, lines=tuple(colors), decimals=decimals)

    return table(
        f"The {_LISTED} slowest engines",
        Query(
            slowest, "TPOT p99", unit=Unit.SECONDS, lines=above(bad=lines.token_interval_seconds), decimals=2
        ),
        column(look.gauge(TTFT_P99), "TTFT p99", Unit.SECONDS, (CALM,), 2),
        column(look.gauge(KV_USAGE), "KV in use", Unit.RATIO, above(bad=lines.kv_usage_full_ratio), 0),
        column(look.gauge(SWAPPED), "Swapped out", Unit.COUNT, beyond(lines.swapped_sequences), 0),
        column(look.gauge(SEQUENCES, where=(("state", "running"),)), "Running", Unit.COUNT, (CALM,), 0),
        column(look.gauge(SEQUENCES, where=(("state", "waiting"),)), "Waiting", Unit.COUNT, (CALM,), 0),
        do="Full, swapped or asked for too much: its own board. None of it: look at the machine.",
        columns=(*context.settings.cluster_labels, "engine"),
        links=(context.to_worker("__data.fields"),),
    )


def _room(context: Context, look: Look) -> tuple[Visual, ...]:
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
        ),
        time_series(
            "Tokens of KV that are left",
            Unit.COUNT,
            Query(look.recorded(LEFT, HEADROOM, over="min").across("sum"), context.legend()),
            do="Below 0 the fleet has accepted more than it can hold: admit less, or add engines.",
            lines=below(0),
            size=(8, 8),
            least=None,
        ),
        time_series(
            "Tokens generated a second",
            Unit.COUNT,
            Query(look.recorded(TOKENS, GENERATION_RATE, over="avg").across("sum"), context.legend()),
            do="Falls while more sequences run: work is thrown away somewhere.",
            size=(8, 8),
        ),
    )


def _heat(context: Context, look: Look) -> tuple[Visual, ...]:
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
                context.legend(said="share by swap"),
                dashed=True,
            ),
            do="At the line: the bars say whose links, the engine's board whether it is swap.",
            lines=above(bad=limit),
            most=1,
        ),
        time_series(
            "Engines with links at the line, and links that lost lanes",
            Unit.COUNT,
            Query(look.recorded(AT_THE_LINE, PCIE_SATURATION), context.legend(said="at the line")),
            Query(look.recorded(DOWNGRADED, PCIE_DOWNGRADED), context.legend(said="downgraded")),
            do="One machine's: its neighbours or its slots. All: swap or offload. docs/runbooks/PcieLinkDowngraded.md.",
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


def _gateways(context: Context, look: Look) -> tuple[Visual, ...]:
    return (
        time_series(
            "Answers by outcome",
            Unit.PER_SECOND,
            Query(
                look.rate(GATEWAY_REQUESTS).across("sum", "gateway", "outcome"),
                context.legend("gateway", "outcome"),
            ),
            finest=_FINEST,
            do="client_left and timeout rise: clients wait too long. rejected and overflow: limits at work.",
            stacked=True,
        ),
        time_series(
            "Attempts for an answer",
            Unit.TIMES,
            Query(look.gauge(AMPLIFICATION), context.legend("gateway")),
            finest=_FINEST,
            do="Clients come again faster than they are answered: docs/runbooks/RetryStorm.md.",
            lines=above(bad=context.lines.retry_amplification_ratio),
        ),
    )
