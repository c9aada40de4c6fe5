"""Remembers GPUs that were there and are missing: one that fell off the bus vanishes from every list. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from exporter.gpu_sample import GpuSample

GONE = "gone"
"""``down_because`` of a GPU that its reader no longer lists."""

KEEP_SECONDS = 3600.0
"""A missing GPU is told of for this long; after that it was taken out on purpose, or nobody cares."""

MOST_GONE = 256
"""Missing GPUs remembered, the last seen first: a reader that makes up names must not fill the memory."""


@dataclass(frozen=True, slots=True)
class GpuRoll:
    """All GPUs that one reader has told of lately, by UUID, and when each was told of last."""

    samples: Mapping[str, GpuSample] = field(default_factory=dict)
    seen_at: Mapping[str, float] = field(default_factory=dict)

    @property
    def gpus(self) -> tuple[GpuSample, ...]:
        """The newest sample of each, those that are missing included."""
        return tuple(self.samples.values())

    def after(self, told: Iterable[GpuSample], at: float) -> GpuRoll:
        """The roll after a read at ``at`` that brought these samples, on the clock of their own times.

        A GPU that was told of before and is missing now is down, with its identity and its counts of
        events but none of its numbers. A MIG instance whose parent is still told of was taken apart on
        purpose, and is forgotten at once.
        """
        samples = {sample.identity.uuid: sample for sample in told}
        seen_at = dict.fromkeys(samples, at)
        missing = sorted(
            (uuid for uuid in self.samples if uuid not in samples), key=self.seen_at.__getitem__, reverse=True
        )
        present = frozenset(samples)
        for uuid in missing[:MOST_GONE]:
            last, last_seen = self.samples[uuid], self.seen_at[uuid]
            if at - last_seen <= KEEP_SECONDS and last.identity.parent_uuid not in present:
                samples[uuid] = _gone(last, at)
                seen_at[uuid] = last_seen
        return replace(self, samples=samples, seen_at=seen_at)


def _gone(last: GpuSample, at: float) -> GpuSample:
    return GpuSample(
        at,
        last.identity,
        up=False,
        down_because=GONE,
        reader_started_at=last.reader_started_at,
        xids_total=last.xids_total,
        xid_last_at=last.xid_last_at,
        errors_total=last.errors_total,
    )
