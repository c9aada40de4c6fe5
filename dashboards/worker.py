"""The Worker board: one engine, from its cache to its clients and its machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dashboards.board import Board, Row
from dashboards.context import WORKER_UID, Context
from dashboards.gateways import gateways
from dashboards.panels import Visual, stat, state_timeline, time_series
from dashboards.queries import Expression, Look
from dashboards.shape import Line, Query, Unit, above, beyond
from dashboards.wording import WASTED
from dashboards.worker_clients import latency, queue
from dashboards.worker_machine import gpus, swap_and_pcie
from dashboards.worker_memory import cache, fragmentation, preemption
from dashboards.worker_sources import kv_events, probe
from exporter.derive.blocks import KV_LEAK, KV_USAGE
from exporter.derive.headroom import DEMAND
from exporter.derive.latency import TPOT_P99
from exporter.derive.preemption import THRASHING, WASTED_WORK
from exporter.derive.stalls import DEADLOCKED, FROZEN, TOKEN_AGE
from exporter.derive.swap import SWAPPED


def board(context: Context) -> Board:
    """The board for these settings."""
    look = context.look("engine")
    return Board(
        "Worker",
        WORKER_UID,
        "One engine: its cache, what is thrown out of it and where to, what its clients feel, and its machine.",
        (*context.clusters(several=False), context.engines(several=False)),
        (
            Row("Now", (*_now(context, look), *_states(look))),
            Row("KV cache", cache(context, look)),
            Row("Preemption and ping-pong", preemption(context, look)),
            Row("Swap and PCIe", swap_and_pcie(context, look)),
            Row("What clients feel", latency(context, look)),
            Row("Queue and prefill", queue(context, look)),
            Row("Fragmentation of tail blocks", fragmentation(context, look)),
            Row("GPUs", gpus(look)),
            Row("KV events (where the sidecar hears them)", kv_events(look), collapsed=True),
            Row("Probe (where the engine has it)", probe(look), collapsed=True),
            Row("Gateways (all that are read)", gateways(context), collapsed=True),
        ),
        context.annotations(follows=("engine",)),
    )


def _now(context: Context, look: Look) -> tuple[Visual, ...]:
    lines = context.lines

    def worst(
        title: str,
        unit: Unit,
        of_ranks: Expression,
        do: str,
        colors: Sequence[Line],
        *,
        decimals: int | None = None,
    ) -> Visual:
        return stat(title, unit, Query(of_ranks.across("max"), ""), do=do, lines=colors, decimals=decimals)

    return (
        worst(
            "KV cache in use",
            Unit.RATIO,
            look.gauge(KV_USAGE, peak=True),
            "High alone is no fault; with what is red beside it, memory is what is short.",
            above(lines.kv_usage_calm_ratio, lines.kv_usage_full_ratio),
            decimals=0,
        ),
        worst(
            "KV asked for, of what there is",
            Unit.TIMES,
            look.gauge(DEMAND),
            "Above 1 somebody has to wait: send less here.",
            above(bad=lines.kv_demand_ratio),
            decimals=1,
        ),
        stat(
            "Swapped out",
            Unit.COUNT,
            Query(look.gauge(SWAPPED, peak=True).across("sum"), ""),
            do="There must be none: docs/runbooks/KvSequencesSwapped.md.",
            lines=beyond(lines.swapped_sequences),
            decimals=0,
        ),
        worst(
            "Work done twice",
            Unit.RATIO,
            look.gauge(WASTED_WORK),
            "Fewer sequences make more tokens: clamp what comes here.",
            WASTED,
            decimals=0,
        ),
        worst(
            "TPOT p99",
            Unit.SECONDS,
            look.gauge(TPOT_P99),
            "See what is red to the left; if nothing is, look at the GPUs.",
            above(bad=lines.token_interval_seconds),
        ),
        worst(
            "Last token",
            Unit.SECONDS,
            look.gauge(TOKEN_AGE),
            "Grows while sequences run: behind a prefill, behind copies, or hung. docs/runbooks/DecodeStalled.md.",
            above(bad=lines.decode_stall_seconds),
            decimals=0,
        ),
    )


def _states(look: Look) -> tuple[Visual, ...]:
    """As lanes, and the same as lines, which can be drawn anywhere."""
    flags = (
        (THRASHING, "thrashes", "red"),
        (FROZEN, "frozen", "purple"),
        (DEADLOCKED, "deadlocked", "orange"),
        (KV_LEAK, "leaks KV", "blue"),
    )
    queries = [Query(look.gauge(signal).across("max"), said, color=color) for signal, said, color in flags]
    do = (
        "Frozen, deadlocked and leaking need a restart: docs/runbooks/actions.md. Numbers behind the first are in"
        " Preemption, behind the others in What clients feel."
    )
    # lanes are colored by what they say
    lanes = [replace(query, color=None) for query in queries]
    return (
        state_timeline("States", *lanes, do=do, size=(12, 8)),
        time_series("States: 1 while it is so, else 0", Unit.COUNT, *queries, do=do, size=(12, 8), most=1),
    )
