"""Pages of any engine: read by the dialect that knows them, and written ones moved on by the second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from exporter.cycle import CycleSettings, initial, step
from exporter.derive.phenomenon import EngineFacts
from exporter.dialects.dialect import Dialect
from exporter.dialects.registry import detect
from exporter.exposition import Reader
from exporter.observation import Observation, SourceStatus
from exporter.sample import EngineSample, RankSample
from exporter.snapshot import Snapshot

WRITTEN = Path(__file__).resolve().parents[1] / "fixtures" / "written"
AT = 1_796_000_000.0
ENGINE = "worker"
SECONDS = 310
"""Longer than any window."""
EVERY_SECONDS = 5
"""Between two reads: whether a signal comes doesn't depend on it, and a run takes a fifth of the time."""
RISE_SECONDS = 600.0
"""In which a counter of a written page rises by as much again as it shows."""
_TYPE = re.compile(r"# TYPE \S+ (\S+)")
_RISING = ("counter", "histogram")


def written(name: str) -> bytes:
    """A page from ``tests/fixtures/written``."""
    return (WRITTEN / f"{name}.prom").read_bytes()


def advanced(body: bytes, seconds: float) -> bytes:
    """The page ``seconds`` later: counters and histograms have gone on at a steady pace, gauges stand."""
    lines = []
    rising = False
    for line in body.decode().splitlines():
        kind = _TYPE.match(line)
        rising = kind[1] in _RISING if kind else rising
        if rising and not line.startswith("#"):
            series, _, text = line.rpartition(" ")
            value = float(text)
            later = value * (1 + seconds / RISE_SECONDS)
            # rounding down keeps buckets in order
            lines.append(f"{series} {float(int(later)) if value.is_integer() else later!r}")
        else:
            lines.append(line)
    return ("\n".join(lines) + "\n").encode()


def dialect_of(body: bytes) -> Dialect[Any]:
    """Who reads this page, found as the sidecar finds it."""
    names: set[str] = set()
    Reader(lambda series: names.add(series.name)).read(body)
    dialect = detect(names)
    assert dialect is not None, "no dialect knows this page"
    return dialect


def read(body: str | bytes, at: float = AT) -> EngineSample:
    """One read of a page, by a dialect and a reader that have seen nothing before."""
    raw = body.encode() if isinstance(body, str) else body
    dialect = dialect_of(raw)
    readings = Reader(dialect.interpret).read(raw + b"\n")
    return dialect.sample(readings, engine=ENGINE, at=at, read_seconds=0.01)


def rank(body: str | bytes, at: float = AT) -> RankSample:
    """The one rank of a page."""
    (only,) = read(body, at).ranks
    return only


class Cycle(NamedTuple):
    """One cycle of a run."""

    sample: EngineSample
    snapshot: Snapshot


def run(bodies: Iterable[bytes], facts: EngineFacts) -> Iterator[Cycle]:
    """A cycle for each of an engine's answers; a derivation that fails is raised."""
    first, *rest = bodies
    dialect = dialect_of(first)
    reader = Reader(dialect.interpret)
    state = initial(CycleSettings({ENGINE: facts}, version="test"))
    for place, body in enumerate([first, *rest]):
        at = AT + place * EVERY_SECONDS
        sample = dialect.sample(reader.read(body), engine=ENGINE, at=at, read_seconds=0.01)
        status = SourceStatus(ENGINE, "engine", answering=True, last_at=at, read_seconds=0.01)
        state, snapshot = step(state, at + 0.1, [Observation(status, sample)])
        for failure in snapshot.failures:
            raise failure.error
        yield Cycle(sample, snapshot)


def moving(name: str) -> Iterator[bytes]:
    """A written page as it moves on, until every window has been filled."""
    body = written(name)
    return (advanced(body, second) for second in range(0, SECONDS, EVERY_SECONDS))


@lru_cache(maxsize=16)
def ran(name: str) -> tuple[Cycle, ...]:
    """All cycles of a written page, kept."""
    return tuple(run(moving(name), EngineFacts()))
