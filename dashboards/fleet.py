"""The Fleet board: who hurts, how much, and where to look next."""

from __future__ import annotations

from collections.abc import Sequence

from alerts.alert import Severity
from alerts.pack.latency import FAST_BURN, FAST_LONG, FAST_SHORT
from alerts.recording_slo import MISSED_RATIOS, SLO
from dashboards.board import Board, Row
from dashboards.context import SUBJECTS, Context
from dashboards.fleet_engines import bars, slowest
from dashboards.fleet_whole import finest, heat, room
from dashboards.gateways import gateways
from dashboards.panels import Visual, stat, table, time_series
from dashboards.queries import Expression, Look
from dashboards.shape import NEUTRAL, Line, Query, Unit, above, beyond
from exporter.derive.blocks import KV_USAGE
from exporter.derive.latency import SLO_EVENTS
from exporter.derive.preemption import THRASHING
from exporter.derive.swap import SWAPPED
from exporter.derive.traffic import SEQUENCES
from exporter.source_signals import SOURCE_UP

UID = "thrashold-fleet"
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
            Row("The worst engines", (*bars(context, look), slowest(context, look))),
            Row("The room that is left", room(context, look)),
            Row("PCIe heat", heat(context, look)),
            Row("Gateways", gateways(context, finest(SLO)), collapsed=True),
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
            *SUBJECTS,
        ),
        size=(24, 6),
        # "page" comes before "warning"
        sorted_by="severity",
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
                    dashed=window == FAST_SHORT,
                )
                for window in (FAST_LONG, FAST_SHORT)
            ),
            do=f"1 is what the month's budget allows, {FAST_BURN:g} over both windows pages. See which engines are"
            " slow, below.",
            lines=above(1, FAST_BURN),
            finest=finest(SLO),
        )
        for slo, said in _OBJECTIVES
    )


def _burnt(context: Context, look: Look, slo: str, window: str) -> Expression:
    missed = look.recorded(MISSED_RATIOS[window], SLO_EVENTS, where=(("slo", slo),))
    return missed.times(1 / context.lines.slo_budget_ratio)
