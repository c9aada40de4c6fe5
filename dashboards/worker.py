"""The Worker board: one engine, from its cache to its clients; its machine is in ``worker_machine.py``."""

from __future__ import annotations

from dashboards import worker_machine
from dashboards.context import WORKER_UID, Context
from dashboards.panels import Board, Row, Visual, stat, state_timeline, time_series
from dashboards.queries import Look
from dashboards.shape import CALM, Query, Unit, above, below, beyond
from exporter.derive.aborts import CLIENT_ABORTS
from exporter.derive.blocks import KV_BLOCKS, KV_LEAK, KV_USAGE
from exporter.derive.fragmentation import RESERVE_RATIO, TAIL_BYTES, TAIL_TOKENS, USED_RATIO
from exporter.derive.headroom import DEMAND, EXHAUSTION, HEADROOM
from exporter.derive.latency import (
    QUEUE_P99,
    SATURATED,
    TOKEN_INTERVAL,
    TPOT_P50,
    TPOT_P99,
    TTFT_P50,
    TTFT_P99,
)
from exporter.derive.pingpong import PINGPONG
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING, TOKENS_PER_PREEMPTION, WASTED_WORK
from exporter.derive.prefill import HEAD_OF_LINE, LONG_PROMPTS, PREFILL_RATIO, PREFIX_HITS
from exporter.derive.ranks import IMBALANCE, RESTARTS
from exporter.derive.stalls import DEADLOCKED, FROZEN, STALL_SECONDS, TOKEN_AGE
from exporter.derive.swap import SWAPPED
from exporter.derive.traffic import (
    GENERATION_RATE,
    PROMPT_RATE,
    REJECTIONS,
    REQUESTS,
    SEQUENCES,
    WAITING_BY_REASON,
)

RANK = "rank {{rank}}"


def board(context: Context) -> Board:
    """The board for these settings."""
    look = context.look("engine")
    return Board(
        "Worker",
        WORKER_UID,
        "One engine: its cache, what is thrown out of it and where to, what its clients feel, and its machine.",
        (*context.clusters(), context.engines(several=False)),
        (
            Row("Now", (*_now(context, look), _states(look))),
            Row("KV cache", _cache(context, look)),
            Row("Preemption and ping-pong", _preemption(context, look)),
            Row("Swap and PCIe", worker_machine.swap_and_pcie(context, look)),
            Row("What clients feel", _latency(context, look)),
            Row("Queue and prefill", _queue(context, look)),
            Row("Fragmentation of tail blocks", _fragmentation(context, look)),
            Row("GPUs", worker_machine.gpus(look)),
            Row("KV events (where the sidecar hears them)", worker_machine.kv_events(look), collapsed=True),
            Row("Probe (where the engine has it)", worker_machine.probe(look), collapsed=True),
            Row("Gateways (all that are read)", worker_machine.gateways(context), collapsed=True),
        ),
        context.annotations(),
    )


def _now(context: Context, look: Look) -> tuple[Visual, ...]:
    lines = context.lines
    size = (4, 4)
    return (
        stat(
            "KV cache in use",
            Unit.RATIO,
            Query(look.gauge(KV_USAGE, peak=True).across("max"), ""),
            do="High alone is no fault; with what is red beside it, memory is what is short.",
            lines=above(lines.kv_usage_calm_ratio, lines.kv_usage_full_ratio),
            size=size,
            decimals=0,
        ),
        stat(
            "KV asked for, of what there is",
            Unit.TIMES,
            Query(look.gauge(DEMAND).across("max"), ""),
            do="Above 1 somebody has to wait: send less here.",
            lines=above(bad=lines.kv_demand_ratio),
            size=size,
            decimals=1,
        ),
        stat(
            "Swapped out",
            Unit.COUNT,
            Query(look.gauge(SWAPPED, peak=True).across("sum"), ""),
            do="There must be none: docs/runbooks/KvSequencesSwapped.md.",
            lines=beyond(lines.swapped_sequences),
            size=size,
            decimals=0,
        ),
        stat(
            "Work done twice",
            Unit.RATIO,
            Query(look.gauge(WASTED_WORK).across("max"), ""),
            do="Fewer sequences make more tokens: clamp what comes here.",
            lines=above(0.1, 0.5),
            size=size,
            decimals=0,
        ),
        stat(
            "TPOT p99",
            Unit.SECONDS,
            Query(look.gauge(TPOT_P99).across("max"), ""),
            do="See what is red to the left; if nothing is, look at the GPUs.",
            lines=above(bad=lines.token_interval_seconds),
            size=size,
        ),
        stat(
            "Last token",
            Unit.SECONDS,
            Query(look.gauge(TOKEN_AGE).across("max"), ""),
            do="Grows while sequences run: behind a prefill, behind copies, or hung. docs/runbooks/DecodeStalled.md.",
            lines=above(bad=lines.decode_stall_seconds),
            size=size,
            decimals=0,
        ),
    )


def _states(look: Look) -> Visual:
    flags = ((THRASHING, "thrashes"), (FROZEN, "frozen"), (DEADLOCKED, "deadlocked"), (KV_LEAK, "leaks KV"))
    return state_timeline(
        "States",
        *(Query(look.gauge(signal).across("max"), said) for signal, said in flags),
        do="Frozen, deadlocked and leaking need a restart: docs/runbooks/actions.md. Numbers behind the first"
        " are in Preemption, behind the others in What clients feel.",
        size=(24, 5),
    )


def _cache(context: Context, look: Look) -> tuple[Visual, ...]:
    lines = context.lines
    return (
        time_series(
            "KV cache in use",
            Unit.RATIO,
            Query(look.gauge(KV_USAGE, peak=True), f"{RANK} peak of a minute"),
            Query(look.gauge(KV_USAGE, over="avg"), f"{RANK} mean", dashed=True),
            do=f"Below {lines.kv_usage_calm_ratio:.0%} memory isn't what is wrong.",
            lines=above(lines.kv_usage_calm_ratio, lines.kv_usage_full_ratio),
            most=1,
        ),
        time_series(
            "KV asked for, of what there is",
            Unit.TIMES,
            Query(look.gauge(DEMAND), RANK),
            do="Leads usage on a ramp. Above 1 the pool can't hold what was accepted.",
            lines=above(bad=lines.kv_demand_ratio),
        ),
        time_series(
            "Blocks",
            Unit.COUNT,
            Query(look.gauge(KV_BLOCKS, where=(("state", "used"),)), f"{RANK} used"),
            Query(look.gauge(KV_BLOCKS, where=(("state", "free"),), over="min"), f"{RANK} free"),
            do="Used with nothing running is a leak. The sum changes only with a restart.",
            size=(8, 8),
        ),
        time_series(
            "Tokens of KV that are left",
            Unit.COUNT,
            Query(look.gauge(HEADROOM, over="min"), RANK),
            do="What may still be let in. Below 0 more was accepted than there will be room for.",
            lines=below(0),
            size=(8, 8),
            least=None,
        ),
        time_series(
            "Time until it is full",
            Unit.SECONDS,
            Query(look.gauge(EXHAUSTION, over="min"), RANK),
            do="On a slow ramp, the time you have. A burst fills the pool faster than this can tell.",
            lines=below(lines.kv_exhaustion_seconds),
            size=(8, 8),
        ),
    )


def _preemption(context: Context, look: Look) -> tuple[Visual, ...]:
    return (
        time_series(
            "Preemptions",
            Unit.PER_SECOND,
            Query(look.gauge(PREEMPTION_RATE), RANK),
            do="A few are how a full pool works. See whether they still pay, to the right.",
            lines=above(context.lines.preemptions_per_second),
            size=(8, 8),
        ),
        time_series(
            "Preempted again",
            Unit.RATIO,
            Query(look.gauge(PINGPONG), f"{RANK} {{{{method}}}}"),
            do="bound: 0 is not proven, never healthy. High: the same sequences go out and in.",
            lines=above(bad=context.lines.repeat_preemption_ratio),
            size=(8, 8),
            most=1,
        ),
        time_series(
            "Work done twice, and tokens between preemptions",
            Unit.RATIO,
            Query(look.gauge(WASTED_WORK), f"{RANK} done twice"),
            Query(
                look.gauge(TOKENS_PER_PREEMPTION, over="min"), f"{RANK} tokens", unit=Unit.COUNT, right=True
            ),
            do="The engine works for what it throws away: clamp what comes, docs/runbooks/KvThrashing.md.",
            size=(8, 8),
            most=1,
        ),
    )


def _latency(context: Context, look: Look) -> tuple[Visual, ...]:
    lines = context.lines
    return (
        time_series(
            "Time per token",
            Unit.SECONDS,
            Query(look.gauge(TPOT_P99), f"{RANK} p99"),
            Query(look.gauge(TPOT_P50), f"{RANK} p50"),
            Query(look.gauge(TOKEN_INTERVAL), f"{RANK} mean gap"),
            do="From 2 s on clients give up. The mean gap sees sequences that stand still, which quantiles can't.",
            lines=above(bad=lines.token_interval_seconds),
            logarithmic=True,
        ),
        time_series(
            "Time to the first token",
            Unit.SECONDS,
            Query(look.gauge(TTFT_P99), f"{RANK} p99"),
            Query(look.gauge(TTFT_P50), f"{RANK} p50"),
            Query(look.gauge(QUEUE_P99), f"{RANK} in the queue, p99", dashed=True),
            do="Mostly queue: send less here. Mostly prefill: prompts are long, or no longer share their beginnings.",
            logarithmic=True,
        ),
        time_series(
            "Standstill",
            Unit.SECONDS,
            Query(look.gauge(TOKEN_AGE), f"{RANK} since the last token"),
            Query(look.rate(STALL_SECONDS), f"{RANK} share of time", unit=Unit.RATIO, right=True),
            do="docs/runbooks/DecodeStalled.md.",
            lines=above(bad=lines.decode_stall_seconds),
            size=(8, 8),
        ),
        time_series(
            "Requests by how they end",
            Unit.PER_SECOND,
            Query(look.rate(REQUESTS).across("sum", "outcome"), "{{outcome}}"),
            Query(look.rate(CLIENT_ABORTS), "client left"),
            Query(look.rate(REJECTIONS), "rejected: {{reason}}"),
            do="Clients leave: they wait too long, and come again. Rejected: the queue's limit is at work.",
            size=(8, 8),
        ),
        time_series(
            "Quantiles that are floors, restarts",
            Unit.COUNT,
            Query(look.gauge(SATURATED).across("max", "of"), "{{of}} is above the top bucket"),
            Query(look.increase(RESTARTS), "restarts"),
            do="1: the quantile is at least what is shown. Restarts in a row: docs/runbooks/EngineRestarting.md.",
            size=(8, 8),
        ),
    )


def _queue(context: Context, look: Look) -> tuple[Visual, ...]:
    lines = context.lines
    return (
        time_series(
            "Sequences",
            Unit.COUNT,
            Query(look.gauge(SEQUENCES).across("sum", "state"), "{{state}}"),
            Query(
                look.gauge(WAITING_BY_REASON).across("sum", "reason"), "waiting for {{reason}}", dashed=True
            ),
            do="Waiting with a full pool: memory. Waiting with room: a prefill blocks the line, or a limit.",
            size=(8, 8),
        ),
        time_series(
            "Tokens a second",
            Unit.COUNT,
            Query(look.gauge(GENERATION_RATE, over="avg"), f"{RANK} generated"),
            Query(look.gauge(PROMPT_RATE, over="avg"), f"{RANK} prompt"),
            do="Generated falls while prompts rise: prefill takes the engine's time.",
            size=(8, 8),
        ),
        time_series(
            "Prefill",
            Unit.RATIO,
            Query(look.gauge(PREFILL_RATIO, over="avg"), f"{RANK} prompt share of tokens"),
            Query(look.gauge(HEAD_OF_LINE), f"{RANK} waits behind a prefill"),
            Query(look.gauge(LONG_PROMPTS), f"{RANK} prompts over {{{{over_tokens}}}}", dashed=True),
            do="Waits behind a prefill: turn chunked prefill on. docs/runbooks/HeadOfLineBlocking.md.",
            lines=above(lines.head_of_line_ratio),
            size=(8, 8),
            most=1,
        ),
        time_series(
            "Prefix cache hits",
            Unit.RATIO,
            Query(look.gauge(PREFIX_HITS, over="avg"), RANK),
            do="A fall means that prompts no longer begin alike: docs/runbooks/PrefixHitsCollapsed.md.",
            lines=(CALM,),
            most=1,
        ),
        time_series(
            "Busiest rank over the mean",
            Unit.TIMES,
            Query(look.gauge(IMBALANCE), "imbalance"),
            do="The router doesn't spread requests by what they hold: docs/runbooks/RanksOutOfBalance.md.",
            lines=above(lines.rank_imbalance_ratio),
        ),
    )


def _fragmentation(context: Context, look: Look) -> tuple[Visual, ...]:
    def bound(name: str) -> Query:
        expression = look.gauge(TAIL_TOKENS, where=(("bound", name),)).across("sum")
        return Query(
            expression, name, band=name in ("high", "max"), color=_BOUNDS[name], dashed=name in ("min", "max")
        )

    return (
        time_series(
            "Empty slots in tail blocks, with their bounds",
            Unit.COUNT,
            *(bound(name) for name in _BOUNDS),
            do="The truth lies between low and high 19 times of 20, and always between min and max. Large blocks waste"
            " more.",
        ),
        time_series(
            "Their share",
            Unit.RATIO,
            Query(look.gauge(USED_RATIO), f"{RANK} of what is used"),
            Query(look.gauge(RESERVE_RATIO), f"{RANK} over what is free", dashed=True),
            Query(
                look.gauge(TAIL_BYTES, where=(("bound", "expected"),)),
                f"{RANK} bytes",
                unit=Unit.BYTES,
                right=True,
            ),
            do="Never the cause of a full pool unless it is large here: docs/runbooks/TailWaste.md.",
            lines=above(context.lines.tail_used_ratio, context.lines.tail_reserve_ratio),
        ),
    )


_BOUNDS = {"min": "text", "max": "text", "low": "blue", "high": "blue", "expected": "orange"}
"""Bounds and their colors; each upper one follows the lower one, down to which it is filled."""
