"""4. Is anything swapped? The invariant is that no sequence is."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.conditions import Reading
from alerts.thresholds import Thresholds
from alerts.triage.known import Known
from alerts.triage.look import Look
from alerts.triage.numbers import amount, count, percent, seconds
from alerts.triage.steps.step import Step
from exporter.derive.preemption import PREEMPTION_RATE
from exporter.derive.swap import SWAP_BYTES_RATE, SWAP_TIER_BYTES, SWAP_TIER_ENABLED, SWAP_TIER_USED, SWAPPED

NAME = "zero swap"


def swap(look: Look, thresholds: Thresholds) -> Step:
    """Of the rank that swaps most."""
    ranks = look.subjects().ranks
    if not ranks:
        return Step(NAME, "unknown: nobody tells")
    worst = max(ranks, key=_peak)
    now, peak, enabled = worst.value(SWAPPED), _peak(worst), worst.value(SWAP_TIER_ENABLED)
    loads = worst.told_of(SWAP_BYTES_RATE, "in")
    preempting = (worst.value(PREEMPTION_RATE) or 0.0) > thresholds.preemptions_per_second
    lines = tuple(_lines(worst))
    told = {
        "swapped_sequences": now,
        "swap_tier_enabled": enabled,
        "swap_in_bytes_per_second": loads and loads.value,
    }
    values: dict[str, float | str] = {name: value for name, value in told.items() if value is not None}
    if now is not None and peak > thresholds.swapped_sequences:
        return Step(
            NAME,
            f"BROKEN: {count(now)} swapped out now, {count(peak)} within the minute",
            True,
            lines,
            values,
        )
    if loads is not None and loads.value > 0 and preempting:
        answer = f"BROKEN: what was preempted comes back at {amount(loads.value)}/s"
        return Step(NAME, answer, True, lines, values)
    if enabled is None and now is None:
        return Step(NAME, "not told: neither a tier nor who is swapped", False, lines, values)
    if enabled == 0:
        return Step(NAME, "kept: there is no tier below the GPU", False, lines, values)
    if now is None:
        where = "nothing comes back after a preemption"
    elif peak:
        where = f"{count(now)} swapped out now, {count(peak)} within the minute, and that many may be"
    else:
        where = "nobody is swapped"
    return Step(NAME, f"kept: {where}" + ("; but a tier is on" if enabled else ""), False, lines, values)


def _peak(known: Known) -> float:
    return max(known.of(Reading(SWAPPED, peak=True)) or 0.0, known.value(SWAPPED) or 0.0)


def _lines(known: Known) -> Iterator[str]:
    size, used = known.value(SWAP_TIER_BYTES), known.value(SWAP_TIER_USED)
    if size or used is not None:
        told = [f"tier of {amount(size)}"] if size else []
        told += [f"{percent(used)} of it taken"] if used is not None else []
        yield ", ".join(told)
    moved = {way: known.told_of(SWAP_BYTES_RATE, way) for way in ("in", "out")}
    if moved["in"] is not None and moved["out"] is not None:
        into, out = moved["in"], moved["out"]
        if into.value or out.value:
            over = seconds(into.seconds)
            yield f"{amount(into.value)}/s into the GPU, {amount(out.value)}/s out of it, over {over}"
