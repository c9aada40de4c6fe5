"""Runs the cycle over a recording of a real engine, scrape by scrape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from exporter.cycle import CycleSettings, initial, step
from exporter.derive.phenomenon import EngineFacts
from exporter.exposition import Reader
from exporter.observation import Observation, SourceStatus
from exporter.sample import EngineSample
from exporter.signal import Signal
from exporter.snapshot import Snapshot
from tests.support.captures import recording
from tests.support.pages import dialect_of

ENGINE = "worker-1"


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle of a replay: when, in which phase of the load, what was read and what was said."""

    at: float
    seconds: float
    phase: str
    sample: EngineSample
    snapshot: Snapshot

    def named(self) -> dict[str, float]:
        """Values as they are scraped, without the labels that a replay has only one of."""
        return {
            named(value.signal, value.labels, peak=value.is_peak): value.value
            for value in self.snapshot.values
        }


def named(signal: Signal, labels: tuple[str, ...], *, peak: bool) -> str:
    """``name_peak{label=value}``, less the engine's and the model's name."""
    pairs = zip(signal.label_names, labels, strict=True)
    kept = ",".join(
        f"{name}={value}" for name, value in pairs if name not in {"engine", "model_name", "source"}
    )
    return signal.name + ("_peak" if peak else "") + (f"{{{kept}}}" if kept else "")


def cycles(name: str, facts: EngineFacts) -> Iterator[Cycle]:
    """A cycle a scrape; any derivation that fails is raised."""
    dialect = dialect_of(next(iter(recording(name).scrapes()))[1])
    reader = Reader(dialect.interpret)
    state = initial(CycleSettings({ENGINE: facts}, version="test"))
    for entry, body in recording(name).scrapes():
        at, seconds = entry["t"], entry["ms"] / 1000
        sample = dialect.sample(reader.read(body), engine=ENGINE, at=at, read_seconds=seconds)
        status = SourceStatus(ENGINE, "engine", answering=True, last_at=at, read_seconds=seconds)
        state, snapshot = step(state, at + seconds, [Observation(status, sample)])
        for failure in snapshot.failures:
            raise failure.error
        yield Cycle(at, seconds, entry["phase"], sample, snapshot)


@lru_cache(maxsize=8)
def replayed(name: str, kv_bytes_per_token: float | None = None) -> tuple[Cycle, ...]:
    """All cycles of a recording."""
    return tuple(cycles(name, EngineFacts(kv_bytes_per_token=kv_bytes_per_token)))
