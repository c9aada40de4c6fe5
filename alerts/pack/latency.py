"""What users feel: tokens that stop or crawl, first tokens and answers that are later than promised."""

from __future__ import annotations

from functools import partial

from alerts.alert import Alert, Expression, Severity
from alerts.causes import Cause
from alerts.conditions import All, Compare, Reading, Rendering, number
from alerts.pack.explaining import STANDSTILL, STILL, STILL_BURN, STUCK_WIDE, THRASH
from alerts.pack.promql import by, gauge
from alerts.pack.wording import AN_ENGINE, DURATION, PERCENT, named
from alerts.recording_presence import PREFIX_HITS_PAID
from alerts.recording_slo import BASE_WINDOW, EVENTS, LABELS, MISSED_RATIOS, mean
from exporter.derive.latency import SLO_EVENTS, TOKEN_INTERVAL
from exporter.derive.prefill import HEAD_OF_LINE, LONG_PROMPTS, PREFIX_HITS
from exporter.derive.stalls import TOKEN_AGE
from exporter.derive.traffic import SEQUENCES

_RUNNING = Compare(Reading(SEQUENCES, (("state", "running"),)), ">", 0.0)

DECODE_STALLED = Alert(
    "DecodeStalled",
    Severity.WARNING,
    Cause.PREFILL_BLOCKING,
    All(Compare(Reading(TOKEN_AGE), ">=", "decode_stall_seconds"), _RUNNING),
    f"{AN_ENGINE}: no token for {DURATION} while sequences run",
    "Every stream of the engine stands still: behind a long prefill, behind copies, or because the engine hangs.",
    for_seconds=15,
    quiet_under=(*THRASH, *STANDSTILL, "EngineDown"),
)
TOKENS_CRAWL = Alert(
    "TokensCrawl",
    Severity.PAGE,
    Cause.SLO_MISSED,
    Compare(Reading(TOKEN_INTERVAL), ">", "token_interval_seconds"),
    f"{AN_ENGINE}: {DURATION} between two tokens",
    "Tokens come so slowly that clients time out and send the same prompts again, which makes it worse.",
    keep_firing_seconds=180,
    quiet_under=(*THRASH, *STANDSTILL),
    consequence_of=(STILL,),
)
HEAD_OF_LINE_BLOCKING = Alert(
    "HeadOfLineBlocking",
    Severity.WARNING,
    Cause.PREFILL_BLOCKING,
    Compare(Reading(HEAD_OF_LINE), ">", "head_of_line_ratio"),
    f"{AN_ENGINE}: sequences wait behind a prefill {PERCENT} of the time",
    "There is room in the pool, and requests wait all the same: long prompts are computed whole before them.",
    for_seconds=120,
    quiet_under=(*THRASH, *STANDSTILL, "EngineDown"),
)
LONG_PROMPTS_OVER_QUOTA = Alert(
    "LongPromptsOverQuota",
    Severity.WARNING,
    Cause.LONG_PROMPTS,
    Compare(Reading(LONG_PROMPTS), ">", "long_prompt_ratio"),
    f"{AN_ENGINE}: {PERCENT} of prompts are longer than the quota",
    "Few long prompts fill a pool that many short ones share. The gateway knows which key they come from.",
    for_seconds=300,
)


def _collapsed(rendering: Rendering) -> str:
    """Low now, and within six hours the cache did pay."""
    on, low = by(rendering, PREFIX_HITS.scope.labels), rendering.thresholds.prefix_hit_ratio
    now = f"max by ({on}) ({gauge(rendering, PREFIX_HITS)}) < {number(low)}"
    return f"{now}\nand on ({on})\n({PREFIX_HITS_PAID.name})"


PREFIX_HITS_COLLAPSED = Alert(
    "PrefixHitsCollapsed",
    Severity.WARNING,
    Cause.PREFIX_COLLAPSE,
    Expression(_collapsed, PREFIX_HITS.scope.labels),
    f"{AN_ENGINE}: the prefix cache hits {PERCENT}, and did far more before",
    "Prompts no longer begin alike: each needs its own prefill and its own blocks for what they shared before.",
    for_seconds=60,
    quiet_under=("EngineDown",),
)

FAST_BURN, FAST_LONG, FAST_SHORT = 14.4, "1h", "5m"
"""Of the fastest page: times the budget's rate, over its long and over its short window."""
_PERIODS = (
    ("Fast", Severity.PAGE, FAST_BURN, FAST_LONG, FAST_SHORT, 120),
    ("Quick", Severity.PAGE, STILL_BURN, "6h", "30m", 900),
    ("Slow", Severity.WARNING, 3.0, "1d", "2h", 3600),
    ("Creeping", Severity.WARNING, 1.0, "3d", "6h", 10800),
)
"""Of a 30-day budget, in the way of Google's SRE workbook: times the budget's rate, long and short window, ``for``."""
_NAMED = 3
"""Engines that a burning fleet's alert names."""
_OBJECTIVES = {"ttft": ("FirstToken", "first tokens"), "tpot": ("TokenPace", "tokens")}


_Period = tuple[str, Severity, float, str, str, int]


def _burning(slo: str, period: _Period, rendering: Rendering) -> str:
    """Of a fleet, by what is recorded: the long window says that it matters, the short one that it goes on.

    Half an hour is too long for somebody who is woken: what was mended would page for as long. So a page wants misses
    within the last minutes as well.
    """
    _, severity, times, long, short, _ = period
    this = f'{{slo="{slo}"}}'
    on = by(rendering, LABELS)
    line = number(round(times * rendering.thresholds.slo_budget_ratio, 12))
    few = number(rendering.thresholds.slo_events_per_second)
    over, still = (f"{MISSED_RATIOS[window].name}{this} > {line}" for window in (long, short))
    # one late answer of six after an idle hour burns the whole hour's budget, and is nothing to be woken for
    enough = (long, short) if severity is Severity.PAGE else (short,)
    parts = [over, still, *(f"{mean(EVENTS, window, this)} > {few}" for window in enough)]
    if severity is Severity.PAGE and short != BASE_WINDOW:
        recently = f"max_over_time({MISSED_RATIOS[BASE_WINDOW].name}{this}[{BASE_WINDOW}])"
        parts.append(f"{recently} > {line}")
    return f"\nand on ({on})\n".join(f"({part})" for part in parts)


def _worst(slo: str, window: str, rendering: Rendering) -> str:
    """The engines with most misses, by name."""
    matchers = rendering.matchers((("slo", slo), ("good", "false"))).removesuffix("}")
    each = f"max by (engine) (rate({SLO_EVENTS.full_name}{matchers},%s}}[{window}]))"
    shown = '{{ .Labels.engine }} ({{ .Value | printf "%.2g" }} a second)'
    return named(f"topk({_NAMED}, {each} > 0)", "Most misses:", shown, rendering)


def _burn_alert(slo: str, period: _Period) -> Alert:
    name, severity, times, long, short, wait = period
    title, what = _OBJECTIVES[slo]
    speeds = [each[0] for each in _PERIODS]
    often = f"{times:g} times as often as" if times > 1 else "more often than"
    faster = [f"Slo{title}Burn{each}" for each in speeds[: speeds.index(name)]]
    # who is told that users wait for first tokens looks at the others too
    other = [f"SloFirstTokenBurn{each}" for each in speeds[: speeds.index(name) + 1]] if slo == "tpot" else []
    return Alert(
        f"Slo{title}Burn{name}",
        severity,
        Cause.SLO_MISSED,
        Expression(partial(_burning, slo, period), LABELS),
        f"The fleet's {what} miss their objective {often} the budget allows",
        f"Over {long} and over {short} so many {what} were late that a month's budget burns {times:g} times too fast."
        " Clients that left count as missed.",
        for_seconds=wait,
        quiet_under=tuple(faster),
        consequence_of=(*STUCK_WIDE, *other),
        worst=partial(_worst, slo, "5m" if severity is Severity.PAGE else "1h"),
    )


LATENCY = (
    DECODE_STALLED,
    TOKENS_CRAWL,
    HEAD_OF_LINE_BLOCKING,
    LONG_PROMPTS_OVER_QUOTA,
    PREFIX_HITS_COLLAPSED,
    *(_burn_alert(slo, period) for slo in _OBJECTIVES for period in _PERIODS),
)
