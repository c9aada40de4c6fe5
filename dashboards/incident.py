"""The Incident board: the chain of a failure from cause to consequence, a link a line, all on one time axis.

On the left what it is now, in the color of its line; on the right how it came to that. Read from the top: the first
link that is red is the one to break.
"""

from __future__ import annotations

from dashboards.board import Board, Row
from dashboards.context import Context
from dashboards.incident_clients import head_of_line, latency, orphans, retries
from dashboards.incident_memory import cache, demand, pcie, ping_pong, swap
from dashboards.panels import Visual
from dashboards.queries import Look
from dashboards.shape import Unit, above, beyond, proven
from dashboards.tables import column, worst_engines
from exporter.derive.blocks import KV_USAGE
from exporter.derive.headroom import DEMAND
from exporter.derive.latency import TOKEN_INTERVAL, TPOT_P99
from exporter.derive.pingpong import PINGPONG
from exporter.derive.stalls import TOKEN_AGE
from exporter.derive.swap import SWAPPED

UID = "thrashold-incident"
_MOST_ENGINES = 20


def board(context: Context) -> Board:
    """The board for these settings."""
    look = context.look("engine")
    links = (demand, cache, swap, pcie, ping_pong, latency, retries, orphans, head_of_line)
    panels = tuple(panel for place, link in enumerate(links, 1) for panel in link(context, look, place))
    return Board(
        "Incident",
        UID,
        "A failure from cause to consequence, a link of the chain a line: what it is now, and how it came to that."
        " Break the first one that is red.",
        (*context.clusters(), context.engines(several=True)),
        (Row("", panels), Row("Which engines", (_engines(context, look),))),
        context.annotations(follows=("engine",)),
    )


def _engines(context: Context, look: Look) -> Visual:
    lines = context.lines
    waits = above(bad=lines.token_interval_seconds)
    return worst_engines(
        context,
        _MOST_ENGINES,
        f"The {_MOST_ENGINES} engines that are asked for most",
        column(look.gauge(DEMAND), "KV asked for", Unit.TIMES, above(bad=lines.kv_demand_ratio), 1),
        column(look.gauge(KV_USAGE), "KV in use", Unit.RATIO, above(bad=lines.kv_usage_full_ratio), 0),
        column(look.gauge(SWAPPED), "Swapped out", Unit.COUNT, beyond(lines.swapped_sequences), 0),
        column(
            look.gauge(PINGPONG),
            "Preempted again",
            Unit.RATIO,
            proven(lines.repeat_preemption_ratio, "text"),
            0,
        ),
        column(look.gauge(TPOT_P99), "TPOT p99", Unit.SECONDS, waits, 2),
        column(look.gauge(TOKEN_INTERVAL), "Mean gap", Unit.SECONDS, waits, 2),
        column(look.gauge(TOKEN_AGE), "Last token", Unit.SECONDS, above(bad=lines.decode_stall_seconds), 0),
        do="Click an engine for its own board.",
    )
