"""The probes through a cycle: the window of each rank that has one, and what their word changes of other values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from exporter.catalogue import PROBE_PHENOMENA
from exporter.derivation import labelled, run
from exporter.derive.aborts import CLIENT_ABORTS
from exporter.derive.phenomenon import EngineFacts
from exporter.derive.preemption import PREEMPTIONS
from exporter.engine_cycle import EngineState
from exporter.handover import Exact, Handover
from exporter.probe_sample import Probed, ProbeSample
from exporter.sample import STALE_AFTER_SECONDS, RankSample
from exporter.signal import Confidence, Signal
from exporter.snapshot import Failure, Value
from exporter.source_signals import PROBED_SIGNAL_INFO
from exporter.window import Window

MOST_PROBES = 1024
"""Ranks remembered over all engines; more come only of senders that keep changing the rank they tell."""

Series = tuple[Signal, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ProbeState:
    """One rank: its window, what its phenomena remember, and the values of its newest sample."""

    window: Window[ProbeSample] = field(default_factory=Window)
    memory: Mapping[str, Any] = field(default_factory=dict)
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Probes:
    """All ranks with a probe by engine and rank, and the counters that probes and estimates tell in turn."""

    ranks: Mapping[tuple[str, str], ProbeState] = field(default_factory=dict)
    handovers: Mapping[Series, Handover] = field(default_factory=dict)


def after_probes(
    probes: Probes,
    samples: Iterable[ProbeSample],
    engines: Mapping[str, EngineState],
    facts: Callable[[str], EngineFacts],
    failures: list[Failure],
) -> Probes:
    """All ranks after what the sources show.

    A rank's values bear the model's name, which only the engine's page tells: before that was read once they wait.
    """
    states = dict(probes.ranks)
    for sample in samples:
        key = (sample.engine, sample.rank)
        state = states.get(key) or ProbeState()
        if not state.window.samples or sample.at > state.window.newest.at:
            rank = _rank(engines.get(sample.engine), sample.rank)
            states[key] = _derived(state, sample, rank, facts(sample.engine), failures)
    if len(states) > MOST_PROBES:
        states = dict(sorted(states.items(), key=lambda item: item[1].window.newest.at)[-MOST_PROBES:])
    return Probes(states, probes.handovers)


def with_probes(
    probes: Probes, values: Sequence[Value], engines: Mapping[str, EngineState], now: float
) -> tuple[Probes, list[Value], frozenset[Signal]]:
    """The values with the probes' among them, and the signals that are told by probes alone now.

    A probe's value takes the place of an estimate of the same series. A counter that a probe has told once goes
    on from there when the probe falls silent.
    """
    if not probes.ranks:
        return probes, list(values), frozenset()
    fresh = {
        key: state
        for key, state in probes.ranks.items()
        if now - state.window.newest.at <= STALE_AFTER_SECONDS
    }
    told = [value for state in fresh.values() for value in state.values]
    exact = dict(_exact_counts(fresh, engines))
    estimates = {(value.signal, value.labels): value.value for value in values if value.signal in _COUNTERS}
    handovers = dict(probes.handovers)
    for series in exact.keys() | handovers.keys():
        before = handovers.get(series) or Handover(estimates.get(series, 0.0), estimates.get(series))
        handovers[series] = before.fed(estimates.get(series), exact.get(series))
        if series in exact or series in estimates:
            told.append(Value(*series, handovers[series].value, is_peak=False))
    replaced = {(value.signal, value.labels, value.is_peak) for value in told}
    kept = [value for value in values if (value.signal, value.labels, value.is_peak) not in replaced]
    probed = [value for value in told if value.signal.probed and _is_exact(value, exact)]
    left = {value.signal for value in kept} | {value.signal for value in told if not _is_exact(value, exact)}
    infos = dict.fromkeys(_info(value.labels[0], value.signal) for value in probed)
    return (
        Probes(probes.ranks, handovers),
        [*kept, *told, *infos],
        frozenset(value.signal for value in probed) - left,
    )


_COUNTERS = (CLIENT_ABORTS, PREEMPTIONS)


def _is_exact(value: Value, exact: Mapping[Series, Exact]) -> bool:
    return value.signal not in _COUNTERS or (value.signal, value.labels) in exact


def _exact_counts(
    fresh: Mapping[tuple[str, str], ProbeState], engines: Mapping[str, EngineState]
) -> Iterator[tuple[Series, Exact]]:
    """What the probes have counted: preemptions by rank, and aborts of an engine all of whose ranks have one."""
    for (name, rank), state in fresh.items():
        sample, known = state.window.newest, _rank(engines.get(name), rank)
        if known is not None and sample.preemptions_total is not None:
            series = (PREEMPTIONS, (name, rank, known.model_name))
            yield series, Exact(sample.at, (sample.sender,), float(sample.preemptions_total))
    for name, engine in engines.items():
        ranks = sorted({rank.rank for rank in engine.window.newest.ranks})
        found = [fresh[name, rank].window.newest for rank in ranks if (name, rank) in fresh]
        counts = [
            sample.aborts_total
            for sample in found
            if sample.aborts_total is not None and not sample.unclear_aborts_total
        ]
        if ranks and len(counts) == len(ranks):
            at = max(sample.at for sample in found)
            source = tuple(sample.sender for sample in found)
            yield (CLIENT_ABORTS, (name,)), Exact(at, source, float(sum(counts)))


def _derived(
    state: ProbeState,
    sample: ProbeSample,
    rank: RankSample | None,
    facts: EngineFacts,
    failures: list[Failure],
) -> ProbeState:
    def failed(phenomenon: str, error: Exception) -> None:
        failures.append(Failure(sample.engine, phenomenon, error))

    window = state.window.appended(sample)
    is_fresh = rank is not None and sample.at - rank.at <= STALE_AFTER_SECONDS
    seen = Probed(window, rank if is_fresh else None)
    memory, points = run(PROBE_PHENOMENA, seen, facts, state.memory, failed)
    whose = (sample.engine, sample.rank)
    values = () if rank is None else tuple(labelled(points.values(), (*whose, rank.model_name)))
    return ProbeState(window, memory, values)


def _rank(engine: EngineState | None, name: str) -> RankSample | None:
    """The newest sample of that rank, whatever model it served."""
    known = [] if engine is None else [key for key in engine.ranks if key[0] == name]
    newest = (engine.ranks[key].window.newest for key in known) if engine is not None else ()
    return max(newest, key=lambda sample: sample.at, default=None)


@lru_cache(maxsize=1024)
def _info(engine: str, signal: Signal) -> Value:
    labels = (engine, signal.full_name, Confidence.MEASURED.value, signal.probed)
    return Value(PROBED_SIGNAL_INFO, labels, 1.0, is_peak=False)
