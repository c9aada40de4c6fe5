"""What tells that a fleet is unwell: signals folded over a subject, and the lines that alerts draw through them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from alerts.thresholds import THRESHOLDS, Thresholds
from analysis.frame import Values
from analysis.incident import composed
from analysis.incident.subject import Fold, Subject
from analysis.incident.unit import Unit
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.blocks import KV_LEAK, KV_USAGE
from exporter.derive.collectives import COLLECTIVE_DROP
from exporter.derive.fragmentation import USED_RATIO
from exporter.derive.gateway import BREAKER_OPEN_RATIO, INFLIGHT, REJECT_P99, REQUESTS, UPSTREAM_REQUESTS
from exporter.derive.headroom import DEMAND
from exporter.derive.inventory import GPU_UP
from exporter.derive.latency import SLO_EVENTS, TOKEN_INTERVAL, TPOT_P50, TPOT_P99, TTFT_P99
from exporter.derive.orphans import ORPHAN_KV
from exporter.derive.pcie import PCIE_DOWNGRADED, PCIE_RATE, PCIE_SATURATION
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING, WASTED_WORK
from exporter.derive.prefill import HEAD_OF_LINE, LONG_PROMPTS, PREFIX_HITS
from exporter.derive.ranks import IMBALANCE, RESTARTS
from exporter.derive.stalls import DEADLOCKED, FROZEN, TOKEN_AGE
from exporter.derive.swap import SWAP_TIER_USED, SWAPPED
from exporter.derive.traffic import GENERATION_RATE, PROMPT_RATE, SEQUENCES
from exporter.signal import Signal
from exporter.source_signals import SOURCE_UP

MISSED_RATIO = 0.5
"""Share of events of a minute that miss an objective, from which it is an incident by itself: more often than not.

A tenth is what a small fleet at its peak has now and then, with all that is wrong being that it is a peak.
"""

Read = Callable[[Subject], Values]


@dataclass(frozen=True, slots=True)
class Measure:
    """One series of a subject that says how it is.

    ``title`` as people say it. ``signals``: what it is made of, the first of them the one that it is named after.
    ``worse``: 1 where more is worse, -1 where less is, 0 where neither is. ``line``: a threshold of alerts by its name,
    or a number that a flag has; beyond it something is wrong whatever was usual. None: only a change says something.
    ``holds_seconds``: how long it has to be beyond. ``weight``: of users' pain, how much it counts for the worst hour.
    """

    title: str
    signals: tuple[Signal, ...]
    read: Read
    unit: Unit = Unit.COUNT
    worse: int = 1
    line: str | float | None = None
    holds_seconds: float = 15.0
    weight: float = 1.0

    @property
    def signal(self) -> Signal:
        """What it is named after."""
        return self.signals[0]

    @property
    def window_seconds(self) -> float:
        """By how much it may tell late: the longest time that one of its values speaks of."""
        return max(each.window_seconds for each in self.signals)

    def limit(self, thresholds: Thresholds = THRESHOLDS) -> float | None:
        """The line as a number."""
        return float(getattr(thresholds, self.line)) if isinstance(self.line, str) else self.line


def _of(signal: Signal, fold: Fold, **where: str) -> tuple[tuple[Signal, ...], Read]:
    return (signal,), partial(_folded, signal, fold, where)


def _folded(signal: Signal, fold: Fold, where: dict[str, str], subject: Subject) -> Values:
    return subject.folded(signal, fold, **where)


SESSIONS = Measure("sessions in flight", (INFLIGHT, SEQUENCES), composed.sessions, worse=0)
WAITING = Measure("waiting sequences", (SEQUENCES,), partial(composed.held, SEQUENCES, {"state": "waiting"}))
RUNNING = Measure("running sequences", *_of(SEQUENCES, Fold.SUM, state="running"), worse=0)
USAGE = Measure("KV usage, fullest", *_of(KV_USAGE, Fold.MAX), Unit.RATIO, worse=0)
KV_DEMAND = Measure("KV demand over pool", *_of(DEMAND, Fold.MAX), Unit.TIMES)
PRESSED = Measure(
    "more KV asked for than there is, and requests wait",
    (DEMAND, SEQUENCES),
    composed.pressed,
    Unit.FLAG,
    line=0.5,
    holds_seconds=30.0,
)
SWAPPED_SEQUENCES = Measure(
    "swapped sequences", *_of(SWAPPED, Fold.SUM), line="swapped_sequences", holds_seconds=10.0
)
PREEMPTIONS = Measure("preemptions a second", *_of(PREEMPTION_RATE, Fold.SUM), Unit.PER_SECOND)
THRASH = Measure("thrashing", *_of(THRASHING, Fold.MAX), Unit.FLAG, line=0.5)
WASTED = Measure("wasted work", *_of(WASTED_WORK, Fold.MAX), Unit.RATIO)
PACE_P50 = Measure("TPOT p50", *_of(TPOT_P50, Fold.MAX), Unit.SECONDS, weight=2.0)
PACE_P99 = Measure("TPOT p99", *_of(TPOT_P99, Fold.MAX), Unit.SECONDS, weight=2.0)
FIRST_P99 = Measure("TTFT p99", *_of(TTFT_P99, Fold.MAX), Unit.SECONDS, weight=2.0)
INTERVAL = Measure(
    "gap between tokens",
    *_of(TOKEN_INTERVAL, Fold.MAX),
    Unit.SECONDS,
    line="token_interval_seconds",
    weight=2.0,
)
STANDS = Measure(
    "no token for",
    (TOKEN_AGE, SEQUENCES),
    composed.stands,
    Unit.SECONDS,
    line="decode_stall_seconds",
)
MISSED = Measure(
    "objectives missed",
    (SLO_EVENTS,),
    composed.missed,
    Unit.RATIO,
    line=MISSED_RATIO,
    holds_seconds=30.0,
    weight=2.0,
)
TOKENS = Measure("tokens a second", *_of(GENERATION_RATE, Fold.SUM), Unit.PER_SECOND, worse=-1)
PROMPTS = Measure("prompt tokens a second", *_of(PROMPT_RATE, Fold.SUM), Unit.PER_SECOND, worse=0)
RETRIES = Measure(
    "attempts for each answer",
    *_of(AMPLIFICATION, Fold.MAX),
    Unit.TIMES,
    line="retry_amplification_ratio",
    holds_seconds=30.0,
)
ORPHANED = Measure(
    "KV held by orphans", *_of(ORPHAN_KV, Fold.MAX), Unit.RATIO, line="orphan_kv_ratio", holds_seconds=30.0
)
BLOCKED = Measure(
    "head-of-line blocking", *_of(HEAD_OF_LINE, Fold.MAX), Unit.RATIO, line="head_of_line_ratio"
)
LONG = Measure(
    "prompts over the quota",
    *_of(LONG_PROMPTS, Fold.MAX),
    Unit.RATIO,
    line="long_prompt_ratio",
    holds_seconds=60.0,
)
PREFIX = Measure("prefix hits", *_of(PREFIX_HITS, Fold.MIN), Unit.RATIO, worse=-1)
PCIE_BYTES = Measure("PCIe, busiest GPU", (PCIE_RATE,), composed.pcie, Unit.BYTES_PER_SECOND)
PCIE_FULL = Measure(
    "PCIe, share of link",
    *_of(PCIE_SATURATION, Fold.MAX),
    Unit.RATIO,
    line="pcie_saturation_ratio",
    holds_seconds=30.0,
)
DOWNGRADED = Measure("PCIe link downgraded", *_of(PCIE_DOWNGRADED, Fold.MAX), Unit.FLAG, line=0.5)
COLLECTIVES = Measure(
    "collectives slower by",
    *_of(COLLECTIVE_DROP, Fold.MAX),
    Unit.RATIO,
    line="collective_drop_ratio",
    holds_seconds=30.0,
)
TAILS = Measure(
    "used KV in empty tails",
    *_of(USED_RATIO, Fold.MAX),
    Unit.RATIO,
    line="tail_used_ratio",
    holds_seconds=60.0,
)
SWAP_POOL = Measure("swap pool used", *_of(SWAP_TIER_USED, Fold.MAX), Unit.RATIO, line="swap_tier_used_ratio")
LEAK = Measure("KV leaking", *_of(KV_LEAK, Fold.MAX), Unit.FLAG, line=0.5)
FREEZE = Measure("engine frozen", *_of(FROZEN, Fold.MAX), Unit.FLAG, line=0.5)
DEADLOCK = Measure("engine deadlocked", *_of(DEADLOCKED, Fold.MAX), Unit.FLAG, line=0.5)
UNEVEN = Measure(
    "load of the busiest rank",
    *_of(IMBALANCE, Fold.MAX),
    Unit.TIMES,
    line="rank_imbalance_ratio",
    holds_seconds=60.0,
)
RESTARTED = Measure("starts of one engine", (RESTARTS,), composed.restarted, line="engine_restarts")
UNREAD = Measure(
    "a source can't be read",
    (SOURCE_UP,),
    partial(composed.silent, SOURCE_UP),
    Unit.FLAG,
    line=0.5,
    holds_seconds=30.0,
)
GPU_GONE = Measure("a GPU can't be read", (GPU_UP,), partial(composed.silent, GPU_UP), Unit.FLAG, line=0.5)
REFUSED = Measure(
    "turned away, with less let through",
    (REQUESTS, UPSTREAM_REQUESTS),
    composed.turned_away,
    Unit.RATIO,
    line="gateway_rejected_ratio",
    holds_seconds=30.0,
)
BREAKER = Measure(
    "breaker at its limit", *_of(BREAKER_OPEN_RATIO, Fold.MAX), Unit.RATIO, line="breaker_open_ratio"
)
SLOW_REFUSALS = Measure(
    "p99 of a refusal",
    *_of(REJECT_P99, Fold.MAX),
    Unit.SECONDS,
    line="gateway_reject_seconds",
    holds_seconds=30.0,
)

MEASURES: tuple[Measure, ...] = (
    *(SESSIONS, RUNNING, WAITING, USAGE, KV_DEMAND, PRESSED),
    *(SWAPPED_SEQUENCES, PREEMPTIONS, THRASH, WASTED),
    *(PACE_P50, PACE_P99, FIRST_P99, INTERVAL, STANDS, MISSED, TOKENS, PROMPTS),
    *(RETRIES, ORPHANED, BLOCKED, LONG, PREFIX),
    *(PCIE_BYTES, PCIE_FULL, DOWNGRADED, COLLECTIVES),
    *(TAILS, SWAP_POOL, LEAK, FREEZE, DEADLOCK, UNEVEN, RESTARTED, UNREAD, GPU_GONE),
    *(REFUSED, BREAKER, SLOW_REFUSALS),
)
"""All of them, in the order in which a story tells them."""
