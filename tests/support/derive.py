"""Runs phenomena over made-up samples, as the cycle would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.gpu_sample import GpuSample
from exporter.join import Join
from exporter.sample import EngineSample, Histogram, RankSample, Sample
from exporter.signal import Point
from exporter.window import Window
from tests.support.gpus import identity

S = TypeVar("S", bound=Sample)
INFINITE = float("inf")

Named = dict[str, float]
"""Values by name: ``kv_blocks{used}``, ``kv_usage_ratio``, ``kv_usage_ratio_peak``."""


def rank(at: float, **fields: Any) -> RankSample:  # noqa: ANN401 -- any field of a sample
    return RankSample(at=at, rank="0", model_name="m", **fields)


def engine(at: float, *ranks: RankSample, **fields: Any) -> EngineSample:  # noqa: ANN401 -- any field of a sample
    return EngineSample(at=at, engine="e", kind="vllm", ranks=ranks, **fields)


def histogram(*buckets: tuple[float, float], total: float | None = None) -> Histogram:
    """From (bound, cumulative count) pairs."""
    bounds, counts = zip(*buckets, strict=True)
    return Histogram(bounds, counts, total)


def window(samples: Iterable[S]) -> Window[S]:
    filled: Window[S] = Window()
    for sample in samples:
        filled = filled.appended(sample)
    return filled


def run(
    phenomenon: Phenomenon[Window[S], Any], samples: Sequence[S], facts: EngineFacts | None = None
) -> list[Named]:
    """What the phenomenon says at each sample, in order."""
    filled: Window[S] = Window()
    state = phenomenon.initial
    said = []
    for sample in samples:
        filled = filled.appended(sample)
        state, points = phenomenon.derive(filled, facts or EngineFacts(), state)
        said.append(said_of(phenomenon, points))
    return said


def said_of(phenomenon: Phenomenon[Any, Any], points: Iterable[Point]) -> Named:
    values: Named = {}
    for point in points:
        assert point.signal in phenomenon.signals, f"{point.signal.name} is not declared"
        assert len(point.labels) == len(point.signal.labels)
        name = point.signal.name + ("_peak" if point.is_peak else "")
        name += "{" + ",".join(point.labels) + "}" if point.labels else ""
        assert name not in values, f"{name} twice"
        values[name] = point.value
    return values


def last(
    phenomenon: Phenomenon[Window[S], Any], samples: Sequence[S], facts: EngineFacts | None = None
) -> Named:
    """What it says at the last sample."""
    return run(phenomenon, samples, facts)[-1]


def gpu(at: float, index: int = 0, **fields: Any) -> GpuSample:  # noqa: ANN401 -- any field of a sample
    return GpuSample(at=at, identity=identity(index), **fields)


def run_joined(
    phenomenon: Phenomenon[Join, Any], joins: Iterable[Join], facts: EngineFacts | None = None
) -> list[Named]:
    """What a phenomenon of an engine on its GPUs says of each of ``joins``, in order."""
    state = phenomenon.initial
    said = []
    for join in joins:
        state, points = phenomenon.derive(join, facts or EngineFacts(), state)
        said.append(said_of(phenomenon, points))
    return said
