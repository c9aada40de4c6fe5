"""One engine through a cycle: its window, its ranks, and the values of its newest sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from exporter.catalogue import ENGINE_PHENOMENA, RANK_PHENOMENA
from exporter.derivation import labelled, run
from exporter.derive.phenomenon import EngineFacts
from exporter.sample import MOST_RANKS, EngineSample, RankSample
from exporter.snapshot import Failure, Value
from exporter.window import HORIZON_SECONDS, QUICK_READ_SECONDS, Window


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


def derived(
    engine: EngineState, sample: EngineSample, facts: EngineFacts, failures: list[Failure]
) -> EngineState:
    """The engine after a new sample; derivations that broke off are added to ``failures``."""
    values: list[Value] = []
    restarted = False
    ranks = _kept(engine.ranks, sample.at)

    def failed(phenomenon: str, error: Exception) -> None:
        failures.append(Failure(sample.engine, phenomenon, error))

    for told in sample.ranks:
        # made anew only where it matters: a sample has some sixty fields
        is_late = sample.read_seconds > QUICK_READ_SECONDS
        each = replace(told, read_seconds=sample.read_seconds) if is_late else told
        key = (each.rank, each.model_name)
        before = ranks.get(key) or RankState(Window(), {})
        rank_window = before.window.appended(each)
        restarted = restarted or _began_anew(engine, before, sample, rank_window)
        memory, points = run(RANK_PHENOMENA, rank_window, facts, before.memory, failed)
        ranks[key] = RankState(rank_window, memory)
        values.extend(labelled(points.values(), (sample.engine, *key)))
    # a rank may have been away for a scrape: its own window knows better than the engine's two newest
    window = engine.window.appended(sample, restarted=restarted)
    memory, points = run(ENGINE_PHENOMENA, window, facts, engine.memory, failed)
    values.extend(labelled(points.values(), (sample.engine,)))
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
