"""One cycle: what the sources show in, the values of all signals out. No clock, no I/O.

The live loop, the analysis of raw history and the drill all call ``step``: there is no second
implementation of any signal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter

from exporter import source_signals
from exporter.derive.phenomenon import EngineFacts
from exporter.engine_cycle import EngineState, derived
from exporter.gateway_cycle import GatewaysState, after_gateways
from exporter.gateway_join import Behind
from exporter.gateway_sample import GatewaySample
from exporter.gpu_cycle import GpuState, JoinState, after_joins, after_samples, fresh_values, identities_of
from exporter.kv_events_cycle import KvEventsState, after_kv_events, fresh_kv_values
from exporter.misnamed_gpus import misnamed, sure
from exporter.misnamed_probes import unmatched
from exporter.observation import ENGINE, Observation, SourceStatus
from exporter.probe_cycle import Probes, after_probes, with_probes
from exporter.sample import STALE_AFTER_SECONDS, EngineSample
from exporter.signal import Confidence, Signal
from exporter.snapshot import Failure, Snapshot, Value

_SIGNAL = itemgetter(Value._fields.index("signal"))


@dataclass(frozen=True, slots=True)
class CycleSettings:
    """What the cycle is told: the facts of each engine by name, and the sidecar's version.

    ``behind`` says which engines stand behind each gateway.
    """

    facts: Mapping[str, EngineFacts] = field(default_factory=dict)
    version: str = ""
    behind: Behind = field(default_factory=Behind)

    def of(self, engine: str) -> EngineFacts:
        """The facts of one engine; of one that settings don't speak of, the defaults."""
        return self.facts.get(engine) or EngineFacts()


@dataclass(frozen=True, slots=True)
class State:
    """Everything that outlives a cycle."""

    settings: CycleSettings
    engines: Mapping[str, EngineState] = field(default_factory=dict)
    gpus: Mapping[str, GpuState] = field(default_factory=dict)
    joins: Mapping[str, JoinState] = field(default_factory=dict)
    kv_events: Mapping[tuple[str, str], KvEventsState] = field(default_factory=dict)
    probes: Probes = field(default_factory=Probes)
    gateways: GatewaysState = field(default_factory=GatewaysState)
    failures: Mapping[str, int] = field(default_factory=dict)
    misnamed: Mapping[str, float] = field(default_factory=dict)


def initial(settings: CycleSettings) -> State:
    """The state before the first cycle."""
    return State(settings)


def step(state: State, now: float, observations: Sequence[Observation]) -> tuple[State, Snapshot]:
    """One cycle at ``now`` (seconds since the epoch).

    A sample is derived from once, when it is new; until the source is stale its values hold. Engines decide
    whether it is ready: GPUs tell nothing of a KV cache.
    """
    values: list[Value] = []
    failures: list[Failure] = []
    ready = False
    engines = dict(state.engines)
    for observation in observations:
        status = observation.status
        up = status.answering and status.last_at is not None and now - status.last_at <= STALE_AFTER_SECONDS
        ready = ready or (up and status.kind == ENGINE)
        sample = observation.engine
        values.extend(_source_values(status, sample or observation.gateway, now, up=up))
        values.extend(observation.own)
        if sample is None:
            continue
        engine = engines.get(sample.engine) or EngineState()
        if not engine.window.samples or sample.at > engine.window.newest.at:
            engine = derived(engine, sample, state.settings.of(sample.engine), failures)
            engines[sample.engine] = engine
        if now - engine.window.newest.at <= STALE_AFTER_SECONDS:
            values.extend(engine.values)
    told = (probe for each in observations for probe in each.probes)
    probes = after_probes(state.probes, told, engines, state.settings.of, failures)
    probes, values, probed = with_probes(probes, values, engines, now)
    gpus = after_samples(state.gpus, (gpu for each in observations for gpu in each.gpus), failures)
    values.extend(fresh_values(gpus, now))
    joins = after_joins(state.joins, engines, gpus, state.settings.of, now, failures)
    values.extend(value for join in joins.values() for value in join.values)
    wrong = misnamed(state.misnamed, state.settings.facts, identities_of(gpus, now), now)
    told = (each for observation in observations for each in observation.probes)
    wrong |= unmatched(state.misnamed, told, engines, now)
    heard = (each for observation in observations for each in observation.kv_events)
    kv_events = after_kv_events(state.kv_events, heard, failures)
    values.extend(fresh_kv_values(kv_events, now))
    gateways = after_gateways(
        state.gateways,
        (each.gateway for each in observations if each.gateway is not None),
        {name: engine.window for name, engine in engines.items()},
        state.settings.behind,
        now,
        failures,
    )
    values.extend(gateways.values(now))
    counts = dict(state.failures)
    for failure in failures:
        counts[failure.phenomenon] = counts.get(failure.phenomenon, 0) + 1
    values.extend(_own_values(state.settings, counts, values, probed))
    return (
        State(state.settings, engines, gpus, joins, kv_events, probes, gateways, counts, wrong),
        Snapshot(now, tuple(values), ready, tuple(failures), sure(wrong, now)),
    )


def _source_values(
    status: SourceStatus, sample: EngineSample | GatewaySample | None, now: float, *, up: bool
) -> list[Value]:
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


def _own_values(
    settings: CycleSettings,
    failures: Mapping[str, int],
    values: Sequence[Value],
    probed: frozenset[Signal],
) -> list[Value]:
    own_signals = (source_signals.SIGNAL_INFO, source_signals.BUILD_INFO)
    present = dict.fromkeys((*map(_SIGNAL, values), *own_signals))
    if failures:
        present[source_signals.DERIVE_ERRORS] = None
    own = [*_signal_infos(tuple(present), probed)]
    own.append(Value(source_signals.BUILD_INFO, (settings.version,), 1.0, is_peak=False))
    own.extend(
        Value(source_signals.DERIVE_ERRORS, (name,), float(count), is_peak=False)
        for name, count in failures.items()
    )
    return own


@lru_cache(maxsize=4)
def _signal_infos(signals: tuple[Signal, ...], probed: frozenset[Signal]) -> tuple[Value, ...]:
    """Nearly always the same as in the cycle before."""
    return tuple(_signal_info(signal, is_probed=signal in probed) for signal in signals)


@lru_cache(maxsize=1024)
def _signal_info(signal: Signal, *, is_probed: bool) -> Value:
    confidence, method = (
        (Confidence.MEASURED, signal.probed) if is_probed else (signal.confidence, signal.method)
    )
    labels = (signal.full_name, confidence.value, method)
    return Value(source_signals.SIGNAL_INFO, labels, 1.0, is_peak=False)
