"""1. Is it memory? How full the pool is, and what fills it."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.thresholds import Thresholds
from alerts.triage.known import Known
from alerts.triage.look import Look
from alerts.triage.numbers import count, percent, seconds, short
from alerts.triage.steps.step import Step
from exporter.derive.blocks import KV_BLOCKS, KV_USAGE
from exporter.derive.fragmentation import USED_RATIO
from exporter.derive.headroom import DEMAND, HEADROOM
from exporter.derive.latency import TOKEN_INTERVAL
from exporter.derive.preemption import PREEMPTION_RATE, TOKENS_PER_PREEMPTION
from exporter.derive.traffic import GENERATION_RATE, SEQUENCES
from exporter.signal import Signal

NAME = "memory"
_TOLD: tuple[tuple[Signal, tuple[str, ...]], ...] = (
    (KV_USAGE, ()),
    (SEQUENCES, ("running",)),
    (SEQUENCES, ("waiting",)),
    (SEQUENCES, ("swapped",)),
    (DEMAND, ()),
    (HEADROOM, ()),
    (USED_RATIO, ()),
    (PREEMPTION_RATE, ()),
    (TOKENS_PER_PREEMPTION, ()),
    (GENERATION_RATE, ()),
)


def memory(look: Look, thresholds: Thresholds) -> Step:
    """Of the fullest rank."""
    ranks = look.subjects().ranks
    if not ranks:
        return Step(NAME, "unknown: nobody tells")
    fullest = ranks[0]
    usage = fullest.value(KV_USAGE)
    values: dict[str, float | str] = {
        "_".join((signal.name, *where)): value
        for signal, where in _TOLD
        if (value := fullest.value(signal, *where)) is not None
    }
    lines = tuple(_lines(fullest, len(ranks)))
    if usage is None:
        return Step(NAME, "unknown: its page tells no KV usage", lines=lines, values=values)
    full, calm = thresholds.kv_usage_full_ratio, thresholds.kv_usage_calm_ratio
    blocks = fullest.value(KV_BLOCKS, "total")
    of = f" of {count(blocks)} blocks" if blocks else ""
    if usage >= full:
        answer = f"FULL: {percent(usage)}{of} taken (over {percent(full)})"
    elif usage >= calm:
        answer = f"BUSY: {percent(usage)}{of} taken ({percent(calm)} to {percent(full)})"
    else:
        answer = f"not memory: {percent(usage)}{of} taken (under {percent(calm)})"
    return Step(NAME, answer, usage >= full, lines, values)


def _lines(known: Known, ranks: int) -> Iterator[str]:
    if ranks > 1:
        yield f"the fullest of {ranks} ranks: rank {known.rank} of {known.model_name}"
    states = (
        f"{count(number)} {state}"
        for state in ("running", "waiting", "swapped", "paused")
        if (number := known.value(SEQUENCES, state)) is not None
        and (number or state in {"running", "waiting"})
    )
    rate, gap = known.told_of(GENERATION_RATE), known.value(TOKEN_INTERVAL)
    pace = "" if rate is None else f"; {short(rate.value)} tokens/s"
    yield ", ".join(states) + pace + ("" if gap is None else f", {seconds(gap)} between two")
    demand, headroom = known.value(DEMAND), known.value(HEADROOM)
    if demand is not None:
        yield f"asked for: {demand:.2f} times the pool (estimate)"
    if headroom is not None:
        less = "short of" if headroom < 0 else "room for"
        yield f"to finish who runs: {less} {short(abs(headroom))} tokens (estimate)"
    tails = known.value(USED_RATIO)
    if tails is not None:
        yield f"empty tails of blocks: {percent(tails)} of what is used (estimate)"
    preempted = known.told_of(PREEMPTION_RATE)
    if preempted is not None:
        each = known.value(TOKENS_PER_PREEMPTION)
        worth = "" if each is None else f", {short(each)} tokens made for each"
        yield f"preemptions: {preempted.value:.2g} a second over {seconds(preempted.seconds)}{worth}"
