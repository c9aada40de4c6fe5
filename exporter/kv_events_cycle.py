"""KV events through a cycle: the window of each rank that is heard, and its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exporter.catalogue import KV_EVENTS_PHENOMENA
from exporter.derivation import labelled, run
from exporter.derive.phenomenon import EngineFacts
from exporter.kv_events_sample import KvEventsSample
from exporter.sample import STALE_AFTER_SECONDS
from exporter.snapshot import Failure, Value
from exporter.window import Window

MOST_RANKS = 1024
"""Ranks remembered over all engines; more come only of publishers that keep changing the rank they tell."""


@dataclass(frozen=True, slots=True)
class KvEventsState:
    """One rank: its window, what its phenomena remember, and the values of its newest sample."""

    window: Window[KvEventsSample] = field(default_factory=Window)
    memory: Mapping[str, Any] = field(default_factory=dict)
    values: tuple[Value, ...] = ()


def after_kv_events(
    ranks: Mapping[tuple[str, str], KvEventsState],
    samples: Iterable[KvEventsSample],
    failures: list[Failure],
) -> dict[tuple[str, str], KvEventsState]:
    """All ranks, by engine and rank, after what the sources show."""
    states = dict(ranks)
    for sample in samples:
        key = (sample.engine, sample.rank)
        state = states.get(key) or KvEventsState()
        if not state.window.samples or sample.at > state.window.newest.at:
            states[key] = _derived(state, sample, failures)
    if len(states) <= MOST_RANKS:
        return states
    return dict(sorted(states.items(), key=lambda item: item[1].window.newest.at)[-MOST_RANKS:])


def fresh_kv_values(ranks: Mapping[tuple[str, str], KvEventsState], now: float) -> list[Value]:
    """The values of all ranks whose newest sample still holds."""
    return [
        value
        for state in ranks.values()
        if now - state.window.newest.at <= STALE_AFTER_SECONDS
        for value in state.values
    ]


def _derived(state: KvEventsState, sample: KvEventsSample, failures: list[Failure]) -> KvEventsState:
    def failed(phenomenon: str, error: Exception) -> None:
        failures.append(Failure(sample.engine, phenomenon, error))

    window = state.window.appended(sample)
    memory, points = run(KV_EVENTS_PHENOMENA, window, EngineFacts(), state.memory, failed)
    return KvEventsState(window, memory, tuple(labelled(points.values(), (sample.engine,))))
