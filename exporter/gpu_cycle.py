"""The GPUs through a cycle: each one's window, and each engine's joined with its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any

from exporter.catalogue import GPU_PHENOMENA, JOIN_PHENOMENA
from exporter.derivation import labelled, run
from exporter.derive.phenomenon import EngineFacts
from exporter.engine_cycle import EngineState
from exporter.gpu_sample import GONE_SECONDS, GpuIdentity, GpuSample
from exporter.join import Join, Neighbour, belongs, joined, unknown
from exporter.sample import STALE_AFTER_SECONDS
from exporter.sampler.reasons import Reason
from exporter.signal import Point
from exporter.snapshot import Failure, Value
from exporter.window import HORIZON_SECONDS, Window

_NO_FACTS = EngineFacts()
MOST_GPUS = 256
"""GPUs and MIG instances remembered; a node has 16 and, partitioned, seven times as many."""


GPU_HORIZON_SECONDS = 75.0
"""What is kept of a GPU: the longest question asked is a minute, from up to some seconds before its newest sample."""

HANDOVER_SECONDS = 3.0
"""For so long a GPU's PCIe bytes wait for who told of them last, as long as the sampler keeps other groups: one read
that failed is made good by the next, whereas what moves in a change of source is in no total."""

_FALLEN_OFF_THE_BUS = 79
"""XID 79."""

Told = tuple[Sequence[Point], list[Value]]


@dataclass(frozen=True, slots=True)
class GpuState:
    """One GPU: its window, what its phenomena remember, and the values of its newest sample.

    ``told`` are its values by phenomenon, each with the points they were made of.
    """

    window: Window[GpuSample] = field(default_factory=lambda: Window(horizon_seconds=GPU_HORIZON_SECONDS))
    memory: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, Told] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JoinState:
    """One engine on its GPUs: what was seen last, what its phenomena remember, and its values."""

    seen: tuple[float, ...] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)
    values: tuple[Value, ...] = ()


def after_samples(
    gpus: Mapping[str, GpuState], samples: Iterable[GpuSample], failures: list[Failure]
) -> dict[str, GpuState]:
    """All GPUs after what the sources show; several sources' samples of one GPU become one."""
    states = dict(gpus)
    for uuid, sample in _merged(samples, gpus).items():
        state = states.get(uuid) or GpuState()
        if not state.window.samples or sample.at > state.window.newest.at:
            states[uuid] = _derived(state, sample, failures)
    latest = sorted(states.items(), key=lambda item: item[1].window.newest.at)[-MOST_GPUS:]
    return dict(latest) if len(latest) < len(states) else states


def fresh_values(gpus: Mapping[str, GpuState], now: float) -> list[Value]:
    """The values of all GPUs whose newest sample still holds."""
    fresh = (state for state in gpus.values() if now - state.window.newest.at <= STALE_AFTER_SECONDS)
    return list(chain.from_iterable(values for state in fresh for _, values in state.told.values()))


def identities_of(gpus: Mapping[str, GpuState], now: float) -> list[GpuIdentity]:
    """The GPUs of the machine, those included that are down."""
    return [window.newest.identity for window in _known(gpus, now)]


def _known(gpus: Mapping[str, GpuState], now: float) -> list[Window[GpuSample]]:
    return [state.window for state in gpus.values() if now - state.window.newest.at <= GONE_SECONDS]


def after_joins(  # noqa: PLR0913, PLR0917 - engines, their GPUs, and what goes in and out of a cycle
    joins: Mapping[str, JoinState],
    engines: Mapping[str, EngineState],
    gpus: Mapping[str, GpuState],
    facts: Callable[[str], EngineFacts],
    now: float,
    failures: list[Failure],
) -> dict[str, JoinState]:
    """Each engine on its GPUs: derived once for each new sample of any of them.

    Its values vanish with the engine's numbers, and where it has no GPU.
    """
    windows = _known(gpus, now)
    identities = [window.newest.identity for window in windows]
    owned = {
        name: [window for window in windows if belongs(window.newest.identity, facts(name).gpus)]
        for name in engines
    }
    after: dict[str, JoinState] = {}
    for name, engine in engines.items():
        state, oldest = joins.get(name) or JoinState(), now - STALE_AFTER_SECONDS
        if engine.window.newest.at < oldest or not owned[name]:
            after[name] = JoinState((), state.memory)
            continue
        ranks = tuple(rank.window for rank in engine.ranks.values() if rank.window.newest.at >= oldest)
        neighbours = _neighbours(name, engines, owned, now)
        missing = len(unknown(facts(name).gpus, identities))
        join = joined(engine.window, ranks, owned[name], neighbours, oldest, missing)
        after[name] = _after_join(state, join, facts(name), failures)
    return after


def _after_join(state: JoinState, join: Join, facts: EngineFacts, failures: list[Failure]) -> JoinState:
    name = join.engine.newest.engine
    seen = (join.engine.newest.at, *(window.newest.at for window in join.gpus), float(join.gpus_stale))
    if seen == state.seen:
        return state

    def failed(phenomenon: str, error: Exception) -> None:
        failures.append(Failure(name, phenomenon, error))

    memory, points = run(JOIN_PHENOMENA, join, facts, state.memory, failed)
    return JoinState(seen, memory, tuple(labelled(points.values(), (name,))))


def _neighbours(
    name: str,
    engines: Mapping[str, EngineState],
    owned: Mapping[str, list[Window[GpuSample]]],
    now: float,
) -> tuple[Neighbour, ...]:
    """The other engines on any of the same GPUs; one that was not read for long is taken to be gone."""
    if len(engines) == 1:
        return ()
    mine = {window.newest.identity.uuid for window in owned[name]}
    found = []
    for other, state in engines.items():
        theirs = {window.newest.identity.uuid for window in owned[other]}
        age = now - state.window.newest.at
        if other != name and age <= HORIZON_SECONDS and not mine.isdisjoint(theirs):
            found.append(Neighbour(state.window, theirs <= mine, age <= STALE_AFTER_SECONDS))
    return tuple(found)


def _derived(state: GpuState, sample: GpuSample, failures: list[Failure]) -> GpuState:
    uuid = sample.identity.uuid

    def failed(phenomenon: str, error: Exception) -> None:
        failures.append(Failure(uuid, phenomenon, error))

    if state.window.samples:
        sample = sample.sharing(state.window.newest)
    window = state.window.appended(sample)
    memory, points = run(GPU_PHENOMENA, window, _NO_FACTS, state.memory, failed)
    told: dict[str, Told] = {}
    for name, found in points.items():
        before = state.told.get(name)
        # a GPU has sixty values, and what is never zero but once a month is half of them
        same = before is not None and before[0] is found
        told[name] = before if before is not None and same else (found, labelled((found,), (uuid,)))
    return GpuState(window, memory, told)


def _merged(samples: Iterable[GpuSample], gpus: Mapping[str, GpuState]) -> dict[str, GpuSample]:
    """One sample a UUID: the first source that has the GPU up tells, later ones fill what it can't.

    Where NVML knows that it fell off the bus, it did: dcgm-exporter may go on showing its last numbers.

    A sample that is stale beside another's is no longer asked: its source no longer answers, and its
    numbers would look as new as those they fill.
    """
    known = _named_once(samples)
    alone = {sample.identity.uuid: sample for sample in known}
    if len(alone) == len(known):  # as nearly everywhere: one source, or each tells of GPUs of its own
        return alone
    newest: dict[str, float] = {}
    for sample in known:
        uuid = sample.identity.uuid
        newest[uuid] = max(newest.get(uuid, sample.at), sample.at)
    found: dict[str, GpuSample] = {}
    first: dict[str, GpuSample] = {}
    for sample in known:
        uuid = sample.identity.uuid
        if newest[uuid] - sample.at > STALE_AFTER_SECONDS:
            continue
        before = found.get(uuid)
        if before is None:
            found[uuid] = first[uuid] = sample
        elif not before.up and sample.up and not _fell_off(before):
            found[uuid] = sample.filled_from(before)
        else:
            found[uuid] = before.filled_from(sample)
    return {
        uuid: sample if sample.pcie is first[uuid].pcie else _once_handed_over(sample, gpus.get(uuid))
        for uuid, sample in found.items()
    }


def _once_handed_over(sample: GpuSample, known: GpuState | None) -> GpuSample:
    """One whose PCIe bytes another source fills in; without them where their own told of some a moment ago."""
    if sample.pcie is None or known is None:
        return sample
    source, since = sample.pcie.source, sample.at - HANDOVER_SECONDS
    lately = takewhile(lambda each: each.at >= since, reversed(known.window.samples))
    is_anothers = any(each.pcie is not None and each.pcie.source != source for each in lately)
    return sample._replace(pcie=None) if is_anothers else sample


def _fell_off(sample: GpuSample) -> bool:
    """Whether one that is down is so for good."""
    return sample.down_because == Reason.GPU_LOST or any(
        xid == _FALLEN_OFF_THE_BUS for xid, _ in sample.xids_total
    )


def _named_once(samples: Iterable[GpuSample]) -> list[GpuSample]:
    """All samples, without MIG instances that one source calls by their number and another by their UUID."""
    everyone = list(samples)
    if not any(sample.identity.parent_uuid for sample in everyone):
        return everyone
    by_uuid = {
        (which.parent_uuid, which.gpu_instance)
        for which in (sample.identity for sample in everyone)
        if which.parent_uuid and which.uuid != which.instance_number
    }
    return [
        sample
        for sample in everyone
        if sample.identity.uuid != sample.identity.instance_number
        or (sample.identity.parent_uuid, sample.identity.gpu_instance) not in by_uuid
    ]
