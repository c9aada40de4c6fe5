"""Joins as the cycle makes them, second by second."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from exporter.gpu_sample import GpuSample
from exporter.join import Join, Neighbour
from exporter.sample import EngineSample, RankSample
from exporter.window import Window

Timed = EngineSample | GpuSample


def joins(samples: Sequence[Timed], *, stale: int = 0) -> Iterator[Join]:
    """After each of ``samples`` the join of what was read so far; one engine, GPUs by UUID, ranks by name."""
    engine: Window[EngineSample] = Window()
    gpus: dict[str, Window[GpuSample]] = {}
    ranks: dict[str, Window[RankSample]] = {}
    for sample in sorted(samples, key=lambda each: each.at):
        if isinstance(sample, EngineSample):
            engine = engine.appended(sample)
            for rank in sample.ranks:
                ranks[rank.rank] = (ranks.get(rank.rank) or Window()).appended(rank)
        else:
            uuid = sample.identity.uuid
            gpus[uuid] = (gpus.get(uuid) or Window()).appended(sample)
        if engine.samples and gpus:
            yield Join(engine, tuple(ranks.values()), tuple(gpus.values()), stale)


def beside(
    made: Iterator[Join], samples: Sequence[EngineSample], *, within: bool = True, fresh: bool = True
) -> Iterator[Join]:
    """The joins with another engine on the same GPUs."""
    window: Window[EngineSample] = Window()
    to_come = deque(samples)
    for join in made:
        while to_come and to_come[0].at <= join.engine.newest.at + 1:
            window = window.appended(to_come.popleft())
        yield replace(join, neighbours=(Neighbour(window, within, fresh),))
