"""Links of the Incident board from slow tokens to none at all: what clients feel and do, and what that leaves."""

from __future__ import annotations

from dashboards.context import Context
from dashboards.incident_link import MORE, OTHER, TYPICAL, WORST, Pair, pair
from dashboards.queries import Look
from dashboards.shape import NEUTRAL, Query, Unit, above
from exporter.derive.aborts import CLIENT_ABORTS
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.latency import TOKEN_INTERVAL, TPOT_P99, TTFT_P99
from exporter.derive.orphans import ORPHAN_KV, ORPHANS
from exporter.derive.prefill import HEAD_OF_LINE
from exporter.derive.stalls import TOKEN_AGE
from exporter.derive.traffic import GENERATION_RATE

_LATELY = "15m"
"""What hurt clients a while ago is why they come again now: its worst stays in sight for so long."""


def latency(context: Context, look: Look, place: int) -> Pair:
    """What clients feel of it first."""
    slowest, gap = look.gauge(TPOT_P99).across("max"), look.gauge(TOKEN_INTERVAL).across("max")
    return pair(
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
            Query(slowest, context.legend(said="TPOT p99, worst"), color=WORST),
            Query(gap, context.legend(said="mean gap, worst"), color=OTHER),
            Query(look.gauge(TPOT_P99).quantile(0.5), context.legend(said="TPOT p99, median"), color=TYPICAL),
            Query(
                look.gauge(GENERATION_RATE, over="avg").across("sum"),
                context.legend(said="tokens a second"),
                unit=Unit.WHOLE,
                color=MORE,
                right=True,
                decimals=0,
            ),
        ),
        do=f"From {context.lines.token_interval_seconds:g} s on clients give up and send the same prompts again."
        " Causes stand above, consequences below.",
        lines=above(bad=context.lines.token_interval_seconds),
        logarithmic=True,
    )


def retries(context: Context, look: Look, place: int) -> Pair:
    """What clients do then."""
    amplified = look.gauge(AMPLIFICATION).across("max")
    aborts = look.rate(CLIENT_ABORTS).across("sum")
    return pair(
        place,
        "Retries: attempts for an answer",
        Unit.TIMES,
        (
            Query(amplified, context.legend(said="most"), decimals=1),
            Query(aborts, context.legend(said="clients leave"), unit=Unit.PER_SECOND, lines=(NEUTRAL,)),
        ),
        (
            Query(amplified, context.legend(said="attempts"), color=WORST),
            Query(aborts, context.legend(said="clients leave"), unit=Unit.PER_SECOND, color=MORE, right=True),
        ),
        do="Each retry brings the whole prompt again. Clamp the gateway so that what is let in is answered in time:"
        " docs/runbooks/RetryStorm.md.",
        lines=above(bad=context.lines.retry_amplification_ratio),
    )


def orphans(context: Context, look: Look, place: int) -> Pair:
    """What is still held for those who left."""
    held, orphans = look.gauge(ORPHAN_KV).across("max"), look.gauge(ORPHANS).across("sum")
    return pair(
        place,
        "KV held for clients that left",
        Unit.RATIO,
        (
            Query(held, context.legend(said="of KV"), decimals=0),
            Query(orphans, context.legend(said="orphans"), unit=Unit.WHOLE, lines=(NEUTRAL,)),
        ),
        (
            Query(held, context.legend(said="of KV"), color=WORST),
            Query(orphans, context.legend(said="orphans"), unit=Unit.COUNT, color=MORE, right=True),
        ),
        do="Something between client and engine swallows disconnects: docs/runbooks/OrphanedKv.md.",
        lines=above(bad=context.lines.orphan_kv_ratio),
        most=1,
    )


def head_of_line(context: Context, look: Look, place: int) -> Pair:
    """Engines that make no token at all."""
    age, blocked = look.gauge(TOKEN_AGE).across("max"), look.gauge(HEAD_OF_LINE).across("max")
    first = look.gauge(TTFT_P99).across("max")
    return pair(
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
            Query(age, context.legend(said="without a token"), color=WORST),
            Query(first, context.legend(said="first token p99"), color=TYPICAL),
            Query(blocked, context.legend(said="behind a prefill"), unit=Unit.RATIO, color=OTHER, right=True),
        ),
        do="All streams stand: a long prefill, copies, or the engine hangs: docs/runbooks/DecodeStalled.md.",
        lines=above(bad=context.lines.decode_stall_seconds),
        logarithmic=True,
    )
