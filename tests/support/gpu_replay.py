"""A recording of a real engine with made-up GPUs beside it, which carry what it swaps and more."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import lru_cache

from exporter.cycle import CycleSettings, initial, step
from exporter.derive.phenomenon import EngineFacts
from exporter.dialects.vllm import VllmDialect
from exporter.exposition import Reader
from exporter.gpu_sample import GpuSample
from exporter.observation import Observation, SourceStatus
from exporter.pcie import HEADER_FACTOR
from exporter.sample import EngineSample
from tests.support.captures import recording
from tests.support.gpus import h100
from tests.support.replay import ENGINE, Cycle

GPUS = 8
OTHER_IN, OTHER_OUT = 40e3, 10e3
"""Bytes a second on each GPU beside the swap: the recorded model is tiny, and so is its swap."""
GPU_PHASE = 0.37
"""The GPUs are read this much after the engine: nobody aligns the two."""


def swapped(scrapes: list[EngineSample], at: float) -> tuple[float, float]:
    """Bytes swapped (in, out) until ``at``: evenly from one scrape to the next."""
    told = [
        (sample.at, rank.swap_in_bytes_total or 0.0, rank.swap_out_bytes_total or 0.0)
        for sample in scrapes
        for rank in sample.ranks
    ]
    for (then, was_in, was_out), (now, is_in, is_out) in itertools.pairwise(told):
        if then <= at < now:
            share = (at - then) / (now - then)
            return was_in + share * (is_in - was_in), was_out + share * (is_out - was_out)
    return told[-1][1:] if at >= told[-1][0] else (0.0, 0.0)


def gpus(scrapes: list[EngineSample], at: float) -> tuple[GpuSample, ...]:
    """All GPUs at ``at``: each an eighth of the swap with its packet headers, and its own other traffic."""
    into, out = swapped(scrapes, at)
    seconds = at - math.floor(scrapes[0].at)
    return tuple(
        h100(
            at,
            index,
            bytes_in=into / GPUS * HEADER_FACTOR + OTHER_IN * seconds,
            bytes_out=out / GPUS * HEADER_FACTOR + OTHER_OUT * seconds,
            nvlink_bytes=1e6 * seconds,
        )
        for index in range(GPUS)
    )


@lru_cache(maxsize=1)
def replayed_with_gpus(name: str) -> tuple[Cycle, ...]:
    """A cycle a scrape, the GPUs read once a second in between."""
    return tuple(_cycles(name))


def _cycles(name: str) -> Iterator[Cycle]:
    dialect = VllmDialect()
    reader = Reader(dialect.interpret)
    entries = list(recording(name).scrapes())
    samples = [
        dialect.sample(reader.read(body), engine=ENGINE, at=entry["t"], read_seconds=entry["ms"] / 1000)
        for entry, body in entries
    ]
    state = initial(CycleSettings({ENGINE: EngineFacts()}, version="test"))
    read_at = 0.0
    for (entry, _), sample in zip(entries, samples, strict=True):
        seconds = entry["ms"] / 1000
        now = sample.at + max(seconds, GPU_PHASE)
        # seconds in which the engine held up its answer are cycles of the GPUs alone
        while read_at and read_at + 1.0 < sample.at:
            read_at += 1.0
            state, _ = step(state, read_at, [_observed(samples, read_at)])
        read_at = sample.at + GPU_PHASE
        status = SourceStatus(ENGINE, "engine", answering=True, last_at=sample.at, read_seconds=seconds)
        state, snapshot = step(state, now, [Observation(status, sample), _observed(samples, read_at)])
        for failure in snapshot.failures:
            raise failure.error
        yield Cycle(sample.at, seconds, entry["phase"], sample, snapshot)


def _observed(samples: list[EngineSample], at: float) -> Observation:
    status = SourceStatus("nvml", "nvml", answering=True, last_at=at, read_seconds=0.001)
    return Observation(status, gpus=gpus(samples, at))
