"""Rows of the Worker board about those who wait for the engine: its clients, and its queue."""

from __future__ import annotations

from dashboards.context import Context
from dashboards.panels import Visual, time_series
from dashboards.queries import Look
from dashboards.shape import CALM, Query, Unit, above
from dashboards.wording import RANK
from exporter.derive.aborts import CLIENT_ABORTS
from exporter.derive.latency import (
    QUEUE_P99,
    SATURATED,
    TOKEN_INTERVAL,
    TPOT_P50,
    TPOT_P99,
    TTFT_P50,
    TTFT_P99,
)
from exporter.derive.prefill import HEAD_OF_LINE, LONG_PROMPTS, PREFILL_RATIO, PREFIX_HITS
from exporter.derive.ranks import IMBALANCE, RESTARTS
from exporter.derive.stalls import STALL_SECONDS, TOKEN_AGE
from exporter.derive.traffic import (
    GENERATION_RATE,
    PROMPT_RATE,
    REJECTIONS,
    REQUESTS,
    SEQUENCES,
    WAITING_BY_REASON,
)


def latency(context: Context, look: Look) -> tuple[Visual, ...]:
    """What clients of this engine feel, and how their requests end."""
    lines = context.lines
    return (
        time_series(
            "Time per token",
            Unit.SECONDS,
            Query(look.gauge(TPOT_P99), f"{RANK} p99"),
            Query(look.gauge(TPOT_P50), f"{RANK} p50"),
            Query(look.gauge(TOKEN_INTERVAL), f"{RANK} mean gap"),
            do=f"From {lines.token_interval_seconds:g} s on clients give up. The mean gap sees sequences that stand"
            " still, which quantiles can't.",
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
            Query(look.counted(RESTARTS), "restarts"),
            do="1: the quantile is at least what is shown. Restarts in a row: docs/runbooks/EngineRestarting.md.",
            size=(8, 8),
        ),
    )


def queue(context: Context, look: Look) -> tuple[Visual, ...]:
    """Who waits, and what prefill takes of the time."""
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
