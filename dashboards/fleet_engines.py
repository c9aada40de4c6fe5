"""Rows of the Fleet board about single engines: who is worst."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.context import Context
from dashboards.panels import Visual, bar_gauge
from dashboards.queries import Expression, Look
from dashboards.shape import CALM, Line, Query, Unit, above, beyond
from dashboards.tables import column, worst_engines
from dashboards.wording import WASTED
from exporter.derive.blocks import KV_USAGE
from exporter.derive.headroom import DEMAND
from exporter.derive.latency import TOKEN_INTERVAL, TPOT_P99, TTFT_P99
from exporter.derive.preemption import WASTED_WORK
from exporter.derive.stalls import TOKEN_AGE
from exporter.derive.swap import SWAPPED
from exporter.derive.traffic import SEQUENCES

_WORST = 10
_LISTED = 20


def bars(context: Context, look: Look) -> tuple[Visual, ...]:
    """The worst by what is asked of them, what they throw away, and what their clients feel."""
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
            WASTED,
        ),
        worst(
            "Mean gap between tokens",
            Unit.SECONDS,
            look.gauge(TOKEN_INTERVAL),
            f"From {lines.token_interval_seconds:g} s on clients give up and come again.",
            above(bad=lines.token_interval_seconds),
        ),
    )


def slowest(context: Context, look: Look) -> Visual:
    """By the pace of tokens, with what may be why."""
    lines = context.lines
    waits = above(bad=lines.token_interval_seconds)
    # an engine that hangs has no pace at all, and is the slowest of them
    pace = look.gauge(TPOT_P99).otherwise(look.gauge(TOKEN_AGE))

    def held(state: str) -> Expression:
        return look.gauge(SEQUENCES, where=(("state", state),))

    return worst_engines(
        context,
        _LISTED,
        f"The {_LISTED} slowest engines",
        column(pace, "TPOT p99, or no token for", Unit.SECONDS, waits, 2),
        column(look.gauge(TTFT_P99), "TTFT p99", Unit.SECONDS, (CALM,), 2),
        column(look.gauge(KV_USAGE), "KV in use", Unit.RATIO, above(bad=lines.kv_usage_full_ratio), 0),
        column(look.gauge(SWAPPED), "Swapped out", Unit.COUNT, beyond(lines.swapped_sequences), 0),
        column(held("running"), "Running", Unit.COUNT, (CALM,), 0),
        column(held("waiting"), "Waiting", Unit.COUNT, (CALM,), 0),
        do="Full, swapped or asked for too much: its own board. None of it: look at the machine.",
    )
