"""Remembers GPUs that were there and are missing: one that fell off the bus vanishes from every list. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from exporter.gpu_sample import GONE_SECONDS, GpuSample
from exporter.sampler.reasons import Reason

MOST_GONE = 256
"""Missing GPUs remembered, the last seen first: a reader that makes up names must not fill the memory."""


@dataclass(frozen=True, slots=True)
class GpuRoll:
    """All GPUs that one reader has told of lately, by UUID: what it told last, and when. ``read_at``: its last read."""

    samples: Mapping[str, GpuSample] = field(default_factory=dict)
    seen_at: Mapping[str, float] = field(default_factory=dict)
    read_at: float | None = None

    @property
    def gpus(self) -> tuple[GpuSample, ...]:
        """The newest sample of each; those that are missing are down."""
        return tuple(
            down(sample, self.read_at or sample.at, Reason.GONE) if self.is_missing(uuid) else sample
            for uuid, sample in self.samples.items()
        )

    def is_missing(self, uuid: str) -> bool:
        """Whether the last read brought nothing of this one."""
        return self.seen_at[uuid] != self.read_at

    def after(self, told: Iterable[GpuSample], at: float) -> GpuRoll:
        """The roll after a read at ``at`` that brought these samples, on the clock of their own times.

        A MIG instance whose parent is still told of was taken apart on purpose, and is forgotten at once.
        """
        samples = {sample.identity.uuid: sample for sample in told}
        seen_at = dict.fromkeys(samples, at)
        missing = sorted(
            (uuid for uuid in self.samples if uuid not in samples), key=self.seen_at.__getitem__, reverse=True
        )
        present = frozenset(samples)
        for uuid in missing[:MOST_GONE]:
            last, last_seen = self.samples[uuid], self.seen_at[uuid]
            if at - last_seen <= GONE_SECONDS and last.identity.parent_uuid not in present:
                samples[uuid] = last
                seen_at[uuid] = last_seen
        return GpuRoll(samples, seen_at, at)


def down(last: GpuSample, at: float, because: str) -> GpuSample:
    """A GPU that can't be read: its identity and its counts of events, and none of its numbers."""
    return GpuSample(
        at,
        last.identity,
        up=False,
        down_because=because,
        reader_started_at=last.reader_started_at,
        xids_total=last.xids_total,
        xid_last_at=last.xid_last_at,
        errors_total=last.errors_total,
    )
