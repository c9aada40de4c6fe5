"""Rows of the Worker board about the engine's memory: its KV cache, what is thrown out of it, what of it is wasted."""

from __future__ import annotations

from dashboards.context import Context
from dashboards.panels import Visual, time_series
from dashboards.queries import Look
from dashboards.shape import Query, Unit, above, below
from dashboards.wording import RANK
from exporter.derive.blocks import KV_BLOCKS, KV_USAGE
from exporter.derive.fragmentation import RESERVE_RATIO, TAIL_BYTES, TAIL_TOKENS, USED_RATIO
from exporter.derive.headroom import DEMAND, EXHAUSTION, HEADROOM
from exporter.derive.pingpong import PINGPONG
from exporter.derive.preemption import PREEMPTION_RATE, TOKENS_PER_PREEMPTION, WASTED_WORK

_BOUNDS = {"min": "text", "max": "text", "low": "blue", "high": "blue", "expected": "orange"}
"""Bounds and their colors; each upper one follows the lower one, down to which it is filled."""


def cache(context: Context, look: Look) -> tuple[Visual, ...]:
    """How full it is, what is asked for, and for how long there is room."""
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


def preemption(context: Context, look: Look) -> tuple[Visual, ...]:
    """What is thrown out of it, and whether that still pays."""
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


def fragmentation(context: Context, look: Look) -> tuple[Visual, ...]:
    """What of the pool holds no token, as far as that can be told."""

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
