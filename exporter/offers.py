"""What an engine can give: found by running the cycle over a busy time made up from one read of it.

In that time everything that the engine tells moves, and what it doesn't tell stays unknown. So there is no second list
of what a signal needs: the derivations themselves say what they make of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar

from exporter.catalogue import ENGINE_PHENOMENA, RANK_PHENOMENA
from exporter.cycle import CycleSettings, initial, step
from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.observation import Observation, SourceStatus
from exporter.sample import EngineSample, Histogram, RankSample, Sample
from exporter.signal import Signal
from exporter.window import Window

S = TypeVar("S", bound=Sample)

STEP_SECONDS = 10.0
STEPS = 33
"""320 s from first to last: longer than any window."""
BUSY = {"running": 4.0, "waiting": 3.0, "swapped": 1.0, "paused": 1.0}
STANDS_AT = frozenset({"external_queries_total"})
"""Counters in which 0 is the news: that nothing is looked up beyond the GPU."""

SIGNALS: tuple[Signal, ...] = (
    *(signal for phenomenon in RANK_PHENOMENA for signal in phenomenon.signals),
    *(signal for phenomenon in ENGINE_PHENOMENA for signal in phenomenon.signals),
)
"""All signals that an engine may give."""


def offers(sample: EngineSample, facts: EngineFacts) -> frozenset[Signal]:
    """The signals that an engine which tells what ``sample`` tells gives while it is busy."""
    state = initial(CycleSettings({sample.engine: facts}))
    given: set[Signal] = set()
    for moved in _busy_time(sample):
        status = SourceStatus(sample.engine, "engine", answering=True, last_at=moved.at, read_seconds=0.0)
        state, snapshot = step(state, moved.at, [Observation(status, moved)])
        given.update(value.signal for value in snapshot.values)
    return frozenset(given.intersection(SIGNALS))


def needed(signal: Signal, sample: EngineSample, facts: EngineFacts) -> tuple[str, ...]:
    """The fields that would have to be told, or told in time, for ``signal`` to be given; the least that will do.

    Of alternatives those that the signal names first. Empty where no telling brings it: it is made of events.
    """
    unknown = unknown_inputs(signal, sample)
    if not unknown or not _given_if(unknown, signal, sample, facts):
        return ()
    wanted = list(unknown)
    for field in reversed(unknown):
        fewer = [each for each in wanted if each != field]
        if _given_if(fewer, signal, sample, facts):
            wanted = fewer
    return tuple(wanted)


def unknown_inputs(signal: Signal, sample: EngineSample) -> tuple[str, ...]:
    """Fields that ``signal`` is made of and that no rank tells, or tells only when it is too late."""
    known = {field.name for field in fields(sample) if is_told(getattr(sample, field.name))}
    late: set[str] = set()
    for rank in sample.ranks:
        known.update(field.name for field in fields(rank) if is_told(getattr(rank, field.name)))
        late.update(rank.told_at_end)
        if not rank.gauges_are_fresh:
            late.add("running")
    return tuple(field for field in signal.inputs if field not in known or field in late)


def _given_if(told: Iterable[str], signal: Signal, sample: EngineSample, facts: EngineFacts) -> bool:
    """Whether the phenomenon of ``signal`` would give it if the engine told these fields too."""
    busy = list(_busy_time(_telling(sample, frozenset(told))))
    for of_ranks in RANK_PHENOMENA:
        if signal in of_ranks.signals:
            by_rank = zip(*(each.ranks for each in busy), strict=True)
            return any(_gives(signal, of_ranks, samples, facts) for samples in by_rank)
    return any(
        _gives(signal, of_engines, busy, facts)
        for of_engines in ENGINE_PHENOMENA
        if signal in of_engines.signals
    )


def _gives(
    signal: Signal, phenomenon: Phenomenon[Window[S], Any], samples: Iterable[S], facts: EngineFacts
) -> bool:
    window: Window[S] = Window()
    state = phenomenon.initial
    for sample in samples:
        window = window.appended(sample)
        state, points = phenomenon.derive(window, facts, state)
        if any(point.signal is signal for point in points):
            return True
    return False


def _telling(sample: EngineSample, told: frozenset[str]) -> EngineSample:
    """The sample of an engine that tells these fields as well, and in time."""
    ranks = sample.ranks or (RankSample(sample.at, "0", ""),)
    return replace(
        sample,
        ranks=tuple(
            replace(
                rank,
                told_at_end=rank.told_at_end - told,
                gauges_hold_seconds=0.0 if "running" in told else rank.gauges_hold_seconds,
                **_made_up(rank, told),
            )
            for rank in ranks
        ),
        **_made_up(sample, told),
    )


def _made_up(sample: EngineSample | RankSample, told: frozenset[str]) -> dict[str, Any]:
    """A value for each of the fields that isn't known: by its kind, whatever it means."""
    made: dict[str, Any] = {}
    for field in fields(sample):
        if field.name not in told or is_told(getattr(sample, field.name)):
            continue
        kind = str(field.type)
        if "Histogram" in kind:
            made[field.name] = Histogram((1.0, math.inf), (10.0, 20.0), 20.0)
        elif kind.startswith("tuple[tuple"):
            made[field.name] = (("capacity", 1.0),)
        elif kind.startswith("tuple"):
            made[field.name] = (16.0,)
        elif kind.startswith("str"):
            made[field.name] = "swap"
        else:
            made[field.name] = 0.5 if field.name.endswith("_ratio") else 16.0
    return made


def is_told(value: object) -> bool:
    """Whether a field of a sample is known."""
    return value is not None and value != ()


def _busy_time(sample: EngineSample) -> Iterator[EngineSample]:
    sample = replace(sample, ranks=tuple(replace(rank, **_narrowed(rank)) for rank in sample.ranks))
    for index in range(STEPS):
        at = sample.at + index * STEP_SECONDS
        changes = {name: moved(name, getattr(sample, name), index) for name in _moving(sample)}
        ranks = tuple(_rank(rank, at, index) for rank in sample.ranks)
        yield replace(sample, at=at, ranks=ranks, **changes)


def _narrowed(rank: RankSample) -> dict[str, Any]:
    """Histograms with their first and last bucket only: enough to say whether something can be made of them."""
    narrow: dict[str, Any] = {}
    for field in fields(rank):
        value = getattr(rank, field.name)
        if isinstance(value, Histogram) and len(value.bounds) > 2:  # noqa: PLR2004
            ends = value.bounds[:: len(value.bounds) - 1], value.counts[:: len(value.counts) - 1]
            narrow[field.name] = Histogram(*ends, value.total)
    return narrow


def _rank(rank: RankSample, at: float, index: int) -> RankSample:
    changes = {name: moved(name, getattr(rank, name), index) for name in _moving(rank)}
    changes |= {name: busy for name, busy in BUSY.items() if getattr(rank, name) is not None}
    if rank.kv_usage_ratio is not None:
        changes["kv_usage_ratio"] = 0.5 + 0.45 * index / STEPS
    if rank.waiting_by_reason:
        changes["waiting_by_reason"] = tuple((reason, 3.0) for reason, _ in rank.waiting_by_reason)
    return replace(rank, at=at, **changes)


def _moving(sample: EngineSample | RankSample) -> Iterator[str]:
    """Fields that are running totals: counters, histograms, and what else moves with each step."""
    for field in fields(sample):
        is_total = field.name.endswith("_total") and field.name not in STANDS_AT
        if is_total or field.name == "heartbeat" or isinstance(getattr(sample, field.name), Histogram):
            yield field.name


def moved(name: str, value: Any, index: int) -> Any:  # noqa: ANN401 -- of whatever kind the field is
    """The total after ``index`` steps: tokens come by the hundred, all else in tens."""
    rise = index * (1000.0 if "tokens" in name else 10.0)
    if isinstance(value, Histogram):
        counts = tuple(count + rise * place for place, count in enumerate(value.counts, 1))
        total = None if value.total is None else value.total + rise * len(counts)
        return Histogram(value.bounds, counts, total)
    if isinstance(value, tuple):
        return tuple((label, count + rise) for label, count in value)
    return None if value is None else value + rise
