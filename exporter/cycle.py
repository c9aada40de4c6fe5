"""One cycle: what the sources show in, the values of all signals out. No clock, no I/O.

The live loop, the analysis of raw history and the drill all call ``step``: there is no second
implementation of any signal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from exporter import source_signals
from exporter.catalogue import ENGINE_PHENOMENA, RANK_PHENOMENA
from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.observation import Observation, SourceStatus
from exporter.sample import STALE_AFTER_SECONDS, EngineSample, RankSample, Sample
from exporter.signal import Point, Scope, Signal
from exporter.window import HORIZON_SECONDS, Window

S = TypeVar("S", bound=Sample)

MOST_RANKS = 256
"""Ranks remembered an engine; the largest data-parallel deployments have some dozens."""


class Value(NamedTuple):
    """One value in a snapshot; ``labels`` in the order of ``signal.label_names``."""

    signal: Signal
    labels: tuple[str, ...]
    value: float
    is_peak: bool


class Failure(NamedTuple):
    """A derivation that broke off: a bug of ours."""

    engine: str
    phenomenon: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All values of one cycle at ``at`` (seconds since the epoch), and whether any source is fresh."""

    at: float
    values: tuple[Value, ...]
    ready: bool
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class CycleSettings:
    """What the cycle is told: the facts of each engine by name, and the sidecar's version."""

    facts: Mapping[str, EngineFacts] = field(default_factory=dict)
    version: str = ""


@dataclass(frozen=True, slots=True)
class RankState:
    """One rank: its window and what its phenomena remember."""

    window: Window[RankSample]
    memory: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EngineState:
    """One engine: its window, its ranks by (rank, model name), and the values of its newest sample."""

    window: Window[EngineSample] = field(default_factory=Window)
    memory: Mapping[str, Any] = field(default_factory=dict)
    ranks: Mapping[tuple[str, str], RankState] = field(default_factory=dict)
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """Everything that outlives a cycle."""

    settings: CycleSettings
    engines: Mapping[str, EngineState] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)


def initial(settings: CycleSettings) -> State:
    """The state before the first cycle."""
    return State(settings)


def step(state: State, now: float, observations: Sequence[Observation]) -> tuple[State, Snapshot]:
    """One cycle at ``now`` (seconds since the epoch).

    A sample is derived from once, when it is new; until the source is stale its values hold.
    """
    engines = dict(state.engines)
    values: list[Value] = []
    failures: list[Failure] = []
    ready = False
    for observation in observations:
        status = observation.status
        up = status.answering and status.last_at is not None and now - status.last_at <= STALE_AFTER_SECONDS
        ready = ready or up
        sample = observation.engine
        values.extend(_source_values(status, sample, now, up=up))
        if sample is None:
            continue
        engine = engines.get(sample.engine) or EngineState()
        if not engine.window.samples or sample.at > engine.window.newest.at:
            facts = state.settings.facts.get(sample.engine, EngineFacts())
            engine = _derived(engine, sample, facts, failures)
            engines[sample.engine] = engine
        if now - engine.window.newest.at <= STALE_AFTER_SECONDS:
            values.extend(engine.values)
    counts = dict(state.failures)
    for failure in failures:
        counts[failure.phenomenon] = counts.get(failure.phenomenon, 0) + 1
    values.extend(_own_values(state.settings, counts, values))
    return State(state.settings, engines, counts), Snapshot(now, tuple(values), ready, tuple(failures))


def _derived(
    engine: EngineState, sample: EngineSample, facts: EngineFacts, failures: list[Failure]
) -> EngineState:
    values: list[Value] = []
    restarted = False
    ranks = _kept(engine.ranks, sample.at)

    def failed(phenomenon: str, error: Exception) -> None:
        failures.append(Failure(sample.engine, phenomenon, error))

    for each in sample.ranks:
        key = (each.rank, each.model_name)
        before = ranks.get(key) or RankState(Window(), {})
        rank_window = before.window.appended(each)
        restarted = restarted or _began_anew(engine, before, sample, rank_window)
        memory, points = _run(RANK_PHENOMENA, rank_window, facts, before.memory, failed)
        ranks[key] = RankState(rank_window, memory)
        values.extend(_labelled(points, {Scope.RANK: (sample.engine, *key)}))
    # a rank may have been away for a scrape: its own window knows better than the engine's two newest
    window = engine.window.appended(sample, restarted=restarted)
    memory, points = _run(ENGINE_PHENOMENA, window, facts, engine.memory, failed)
    values.extend(_labelled(points, {Scope.ENGINE: (sample.engine,)}))
    return replace(engine, window=window, memory=memory, ranks=ranks, values=tuple(values))


def _began_anew(
    engine: EngineState, before: RankState, sample: EngineSample, rank: Window[RankSample]
) -> bool:
    """Whether a rank's restart is one of the engine that wasn't seen before.

    A front end that tells its start knows best. Ranks that come back one after another from the same
    restart are one.
    """
    if sample.started_at is not None or not rank.restarted() or not before.window.samples:
        return False
    return not any(at > before.window.newest.at for at in engine.window.restarts)


def _kept(ranks: Mapping[tuple[str, str], RankState], now: float) -> dict[tuple[str, str], RankState]:
    """All ranks: their totals outlive an absence. Of one long away only the newest sample is kept.

    Beyond ``MOST_RANKS``, which only labels that keep changing can reach, those seen last stay.
    """
    latest = sorted(ranks.items(), key=lambda item: item[1].window.newest.at)[-MOST_RANKS:]
    return {
        key: rank
        if rank.window.newest.at >= now - HORIZON_SECONDS
        else replace(rank, window=Window((rank.window.newest,)))
        for key, rank in latest
    }


def _run(
    phenomena: Sequence[Phenomenon[S, Any]],
    window: Window[S],
    facts: EngineFacts,
    memory: Mapping[str, Any],
    failed: Callable[[str, Exception], None],
) -> tuple[dict[str, Any], list[Point]]:
    """Every phenomenon once; one that raises keeps its memory and gives no points."""
    after: dict[str, Any] = {}
    points: list[Point] = []
    for phenomenon in phenomena:
        kept = memory.get(phenomenon.name, phenomenon.initial)
        try:
            after[phenomenon.name], found = phenomenon.derive(window, facts, kept)
        except Exception as error:  # noqa: BLE001 -- one failure stays one failure
            after[phenomenon.name] = kept
            failed(phenomenon.name, error)
            continue
        points.extend(found)
    return after, points


def _labelled(points: Sequence[Point], scopes: Mapping[Scope, tuple[str, ...]]) -> list[Value]:
    return [
        Value(point.signal, scopes[point.signal.scope] + point.labels, point.value, point.is_peak)
        for point in points
    ]


def _source_values(status: SourceStatus, sample: EngineSample | None, now: float, *, up: bool) -> list[Value]:
    name = status.name
    values = [Value(source_signals.SOURCE_UP, (name,), float(up), is_peak=False)]
    if status.last_at is not None:
        values.append(
            Value(source_signals.SOURCE_AGE, (name,), max(0.0, now - status.last_at), is_peak=False)
        )
    if status.read_seconds is not None:
        values.append(Value(source_signals.SOURCE_READ_SECONDS, (name,), status.read_seconds, is_peak=False))
    values.extend(
        Value(source_signals.SOURCE_ERRORS, (name, reason), float(count), is_peak=False)
        for reason, count in status.errors
    )
    if sample is not None and now - sample.at <= STALE_AFTER_SECONDS:
        values.extend(
            Value(source_signals.SOURCE_ODDITY, (name, note), 1.0, is_peak=False) for note in sample.notes
        )
    return values


def _own_values(settings: CycleSettings, failures: Mapping[str, int], values: Sequence[Value]) -> list[Value]:
    own_signals = (source_signals.SIGNAL_INFO, source_signals.BUILD_INFO)
    present = dict.fromkeys((*(value.signal for value in values), *own_signals))
    if failures:
        present[source_signals.DERIVE_ERRORS] = None
    own = [
        Value(
            source_signals.SIGNAL_INFO,
            (signal.full_name, signal.confidence.value, signal.method),
            1.0,
            is_peak=False,
        )
        for signal in present
    ]
    own.append(Value(source_signals.BUILD_INFO, (settings.version,), 1.0, is_peak=False))
    own.extend(
        Value(source_signals.DERIVE_ERRORS, (name,), float(count), is_peak=False)
        for name, count in failures.items()
    )
    return own
