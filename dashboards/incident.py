"""The Incident board: the chain of a failure from cause to consequence, a link a line, all on one time axis.

On the left what it is now, in the color of its line; on the right how it came to that. Read from the top: the first
link that is red is the one to break.
"""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.context import Context
from dashboards.panels import Board, Row, Visual, stat, table, time_series
from dashboards.queries import Expression, Look
from dashboards.shape import NEUTRAL, Line, Query, Unit, above, beyond
from exporter.derive.aborts import CLIENT_ABORTS
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.attribution import SWAP_SHARE
from exporter.derive.blocks import KV_USAGE
from exporter.derive.headroom import DEMAND
from exporter.derive.latency import TOKEN_INTERVAL, TPOT_P99, TTFT_P99
from exporter.derive.orphans import ORPHAN_KV, ORPHANS
from exporter.derive.pcie import PCIE_SATURATION
from exporter.derive.pingpong import PINGPONG
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING, WASTED_WORK
from exporter.derive.prefill import HEAD_OF_LINE
from exporter.derive.stalls import TOKEN_AGE
from exporter.derive.swap import SWAP_BYTES_RATE, SWAP_ESTIMATE, SWAPPED
from exporter.derive.traffic import GENERATION_RATE, SEQUENCES

UID = "thrashold-incident"
_LEFT, _RIGHT, _HIGH = 6, 18, 5
_WORST, _TYPICAL, _MORE, _OTHER = "red", "blue", "orange", "purple"
_MOST_ENGINES = 20
_LATELY = "15m"
"""What hurt clients a while ago is why they come again now: its worst stays in sight for so long."""
Pair = tuple[Visual, Visual]


def board(context: Context) -> Board:
    """The board for these settings."""
    look = context.look("engine")
    links = (_demand, _cache, _swap, _pcie, _ping_pong, _latency, _retries, _orphans, _head_of_line)
    panels = tuple(panel for place, link in enumerate(links, 1) for panel in link(context, look, place))
    return Board(
        "Incident",
        UID,
        "A failure from cause to consequence, a link of the chain a line: what it is now, and how it came to that."
        " Break the first one that is red.",
        (*context.clusters(), context.engines(several=True)),
        (Row("", panels), Row("Which engines", (_engines(context, look),))),
        context.annotations(),
    )


def _pair(
    place: int,
    title: str,
    unit: Unit,
    now: Sequence[Query],
    then: Sequence[Query],
    *,
    do: str,
    lines: Sequence[Line],
    most: float | None = None,
    logarithmic: bool = False,
) -> Pair:
    named = f"{place}. {title}"
    return (
        stat(named, unit, *now, do=do, lines=lines, size=(_LEFT, _HIGH), names=True),
        time_series(
            title,
            unit,
            *then,
            do=do,
            lines=lines,
            size=(_RIGHT, _HIGH),
            most=most,
            aligned=True,
            logarithmic=logarithmic,
        ),
    )


def _demand(context: Context, look: Look, place: int) -> Pair:
    demand = look.gauge(DEMAND)
    waiting = look.gauge(SEQUENCES, where=(("state", "waiting"),)).across("sum")
    return _pair(
        place,
        "KV asked for, of what there is",
        Unit.TIMES,
        (
            Query(demand.across("max"), context.legend(said="most"), decimals=1),
            Query(waiting, context.legend(said="waiting"), unit=Unit.WHOLE, lines=(NEUTRAL,)),
        ),
        (
            Query(demand.across("max"), context.legend(said="most"), color=_WORST),
            Query(demand.quantile(0.5), context.legend(said="median engine"), color=_TYPICAL),
            Query(waiting, context.legend(said="waiting"), unit=Unit.COUNT, color=_MORE, right=True),
        ),
        do="Above 1 somebody has to wait. Clamp the gateway early: docs/runbooks/actions.md.",
        lines=above(bad=context.lines.kv_demand_ratio),
    )


def _cache(context: Context, look: Look, place: int) -> Pair:
    usage, full = look.gauge(KV_USAGE, peak=True), context.lines.kv_usage_full_ratio
    return _pair(
        place,
        "KV cache in use",
        Unit.RATIO,
        (
            Query(usage.across("max"), context.legend(said="fullest"), decimals=0),
            _count(context, usage.across("max", "engine").compared(">=", full), "engines full"),
        ),
        (
            Query(usage.across("max"), context.legend(said="fullest"), color=_WORST),
            Query(usage.quantile(0.5), context.legend(said="median engine"), color=_TYPICAL),
            Query(
                usage.across("max", "engine").compared(">=", full).across("sum"),
                context.legend(said="engines full"),
                unit=Unit.COUNT,
                color=_MORE,
                right=True,
                decimals=0,
            ),
        ),
        do=f"Below {context.lines.kv_usage_calm_ratio:.0%} look at compute and network instead of memory. Full"
        " and nothing red below: a busy fleet, no fault.",
        lines=above(context.lines.kv_usage_calm_ratio, full),
        most=1,
    )


def _swap(context: Context, look: Look, place: int) -> Pair:
    swapped = look.gauge(SWAPPED, peak=True).across("sum")
    moved = look.gauge(SWAP_BYTES_RATE, peak=True).across("sum", "direction")
    estimate = look.rate(SWAP_ESTIMATE).across("sum")
    both = moved.across("sum").otherwise(estimate)
    return _pair(
        place,
        "Swapped out",
        Unit.COUNT,
        (
            Query(swapped, context.legend(said="sequences"), decimals=0),
            Query(both, context.legend(said="moved"), unit=Unit.BYTES_PER_SECOND, lines=(NEUTRAL,)),
        ),
        (
            Query(swapped, context.legend(said="sequences"), color=_WORST),
            Query(moved, context.legend("direction", said="moved"), unit=Unit.BYTES_PER_SECOND, right=True),
            Query(
                estimate,
                context.legend(said="moved, estimate (V0)"),
                unit=Unit.BYTES_PER_SECOND,
                color=_MORE,
                right=True,
            ),
        ),
        do="The invariant is that nothing is swapped. Clamp the gateway, then drain and restart with swap off:"
        " docs/runbooks/KvSequencesSwapped.md.",
        lines=beyond(context.lines.swapped_sequences),
    )


def _pcie(context: Context, look: Look, place: int) -> Pair:
    limit = context.lines.pcie_saturation_ratio
    into, out = (
        look.of_engines(look.gauge(PCIE_SATURATION, where=(("direction", direction),), peak=True))
        for direction in ("in", "out")
    )
    hot = look.of_engines(look.gauge(PCIE_SATURATION, peak=True).across("max", "uuid"))
    share = look.gauge(SWAP_SHARE).across("max")
    return _pair(
        place,
        "PCIe, busiest link",
        Unit.RATIO,
        (
            Query(hot.across("max"), context.legend(said="of the link"), decimals=0),
            _count(context, hot.across("max", "engine").compared(">", limit), "engines at the line"),
        ),
        (
            Query(into.across("max"), context.legend(said="to the GPU"), color=_WORST),
            Query(out.across("max"), context.legend(said="to the host"), color=_MORE),
            Query(
                share,
                context.legend(said="share by swap"),
                unit=Unit.RATIO,
                color=_OTHER,
                dashed=True,
                right=True,
            ),
        ),
        do="At the line, mostly by swap: as the link above it. Not by swap: somebody else on the"
        " machine, docs/runbooks/PcieSaturatedByOthers.md.",
        lines=above(bad=limit),
        most=1,
    )


def _ping_pong(context: Context, look: Look, place: int) -> Pair:
    repeats = look.gauge(PINGPONG)
    wasted = look.gauge(WASTED_WORK)
    preempted = look.gauge(PREEMPTION_RATE).across("sum")
    thrashing = look.gauge(THRASHING).across("max", "engine")
    return _pair(
        place,
        "Ping-pong: work done twice",
        Unit.RATIO,
        (
            Query(wasted.across("max"), context.legend(said="most"), decimals=0),
            Query(repeats.across("max"), context.legend(said="preempted again, at least"), decimals=0),
            _count(context, thrashing, "engines thrash"),
        ),
        (
            Query(repeats.across("max", "method"), context.legend("method", said="repeats"), color=_WORST),
            Query(wasted.across("max"), context.legend(said="work done twice"), color=_OTHER),
            Query(
                preempted,
                context.legend(said="preemptions"),
                unit=Unit.PER_SECOND,
                color=_MORE,
                right=True,
            ),
        ),
        do="0 % means not proven, never healthy. Where most work is done twice, fewer sequences make more tokens: clamp"
        " the gateway, docs/runbooks/KvThrashing.md.",
        lines=above(bad=context.lines.repeat_preemption_ratio),
        most=1,
    )


def _latency(context: Context, look: Look, place: int) -> Pair:
    slowest, gap = look.gauge(TPOT_P99).across("max"), look.gauge(TOKEN_INTERVAL).across("max")
    return _pair(
        place,
        "Time per token",
        Unit.SECONDS,
        (
            Query(
                look.gauge(TOKEN_INTERVAL, window=_LATELY).across("max"),
                context.legend(said=f"worst gap of {_LATELY}"),
            ),
            Query(slowest, context.legend(said="p99 now")),
        ),
        (
            Query(slowest, context.legend(said="TPOT p99, worst"), color=_WORST),
            Query(gap, context.legend(said="mean gap, worst"), color=_OTHER),
            Query(
                look.gauge(TPOT_P99).quantile(0.5), context.legend(said="TPOT p99, median"), color=_TYPICAL
            ),
            Query(
                look.gauge(GENERATION_RATE, over="avg").across("sum"),
                context.legend(said="tokens a second"),
                unit=Unit.WHOLE,
                color=_MORE,
                right=True,
            ),
        ),
        do="From 2 s on clients give up and send the same prompts again. Causes stand above, consequences below.",
        lines=above(bad=context.lines.token_interval_seconds),
        logarithmic=True,
    )


def _retries(context: Context, look: Look, place: int) -> Pair:
    amplified = look.gauge(AMPLIFICATION).across("max")
    aborts = look.rate(CLIENT_ABORTS).across("sum")
    return _pair(
        place,
        "Retries: attempts for an answer",
        Unit.TIMES,
        (
            Query(amplified, context.legend(said="most"), decimals=1),
            Query(aborts, context.legend(said="clients leave"), unit=Unit.PER_SECOND, lines=(NEUTRAL,)),
        ),
        (
            Query(amplified, context.legend(said="attempts"), color=_WORST),
            Query(
                aborts, context.legend(said="clients leave"), unit=Unit.PER_SECOND, color=_MORE, right=True
            ),
        ),
        do="Each retry brings the whole prompt again. Clamp the gateway so that what is let in is answered in time:"
        " docs/runbooks/RetryStorm.md.",
        lines=above(bad=context.lines.retry_amplification_ratio),
    )


def _orphans(context: Context, look: Look, place: int) -> Pair:
    held, orphans = look.gauge(ORPHAN_KV).across("max"), look.gauge(ORPHANS).across("sum")
    return _pair(
        place,
        "KV held for clients that left",
        Unit.RATIO,
        (
            Query(held, context.legend(said="of KV"), decimals=0),
            Query(orphans, context.legend(said="orphans"), unit=Unit.WHOLE, lines=(NEUTRAL,)),
        ),
        (
            Query(held, context.legend(said="of KV"), color=_WORST),
            Query(orphans, context.legend(said="orphans"), unit=Unit.COUNT, color=_MORE, right=True),
        ),
        do="Something between client and engine swallows disconnects: docs/runbooks/OrphanedKv.md.",
        lines=above(bad=context.lines.orphan_kv_ratio),
        most=1,
    )


def _head_of_line(context: Context, look: Look, place: int) -> Pair:
    age, blocked = look.gauge(TOKEN_AGE).across("max"), look.gauge(HEAD_OF_LINE).across("max")
    first = look.gauge(TTFT_P99).across("max")
    return _pair(
        place,
        "No token at all for",
        Unit.SECONDS,
        (
            Query(
                look.gauge(TOKEN_AGE, window=_LATELY).across("max"),
                context.legend(said=f"longest of {_LATELY}"),
            ),
            Query(
                blocked,
                context.legend(said="behind a prefill"),
                unit=Unit.RATIO,
                lines=(NEUTRAL,),
                decimals=0,
            ),
        ),
        (
            Query(age, context.legend(said="without a token"), color=_WORST),
            Query(first, context.legend(said="first token p99"), color=_TYPICAL),
            Query(
                blocked, context.legend(said="behind a prefill"), unit=Unit.RATIO, color=_OTHER, right=True
            ),
        ),
        do="All streams stand: a long prefill, copies, or the engine hangs: docs/runbooks/DecodeStalled.md.",
        lines=above(bad=context.lines.decode_stall_seconds),
        logarithmic=True,
    )


def _engines(context: Context, look: Look) -> Visual:
    worst = look.gauge(DEMAND).across("max", "engine").ranked(_MOST_ENGINES)
    lines = context.lines

    def column(expression: Expression, said: str, unit: Unit, colors: Sequence[Line], decimals: int) -> Query:
        return Query(
            expression.across("max", "engine").among(worst),
            said,
            unit=unit,
            lines=tuple(colors),
            decimals=decimals,
        )

    return table(
        f"The {_MOST_ENGINES} engines that are asked for most",
        Query(worst, "KV asked for", unit=Unit.TIMES, lines=above(bad=lines.kv_demand_ratio), decimals=1),
        column(look.gauge(KV_USAGE), "KV in use", Unit.RATIO, above(bad=lines.kv_usage_full_ratio), 0),
        column(look.gauge(SWAPPED), "Swapped out", Unit.COUNT, beyond(lines.swapped_sequences), 0),
        column(
            look.gauge(PINGPONG), "Preempted again", Unit.RATIO, above(bad=lines.repeat_preemption_ratio), 0
        ),
        column(look.gauge(TPOT_P99), "TPOT p99", Unit.SECONDS, above(bad=lines.token_interval_seconds), 2),
        column(
            look.gauge(TOKEN_INTERVAL), "Mean gap", Unit.SECONDS, above(bad=lines.token_interval_seconds), 2
        ),
        column(look.gauge(TOKEN_AGE), "Last token", Unit.SECONDS, above(bad=lines.decode_stall_seconds), 0),
        do="Click an engine for its own board.",
        columns=(*context.settings.cluster_labels, "engine"),
        links=(context.to_worker("__data.fields"),),
    )


def _count(context: Context, flag: Expression, said: str) -> Query:
    return Query(
        flag.across("sum"), context.legend(said=said), unit=Unit.COUNT, lines=above(bad=1), decimals=0
    )
