"""What is known of the GPUs from the sampler's frames: no clock, no I/O.

A GPU that was seen stays known: one that the frames no longer show, or whose numbers have become old, is
shown as down, and why. Counters go on over the sampler's restarts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeVar

from exporter.gpu_sample import GpuIdentity, GpuSample
from exporter.sampler.frame import ASLEEP_SECONDS, HUNG_SECONDS, Frame, Unopened
from exporter.sampler.reasons import Reason
from exporter.sources.gpu_roll import GpuRoll, down

Key = TypeVar("Key")


class Totals(Counter[Key]):
    """Sums that go on where what is counted begins anew from 0."""

    def __init__(self) -> None:
        super().__init__()
        self._newest: Mapping[Key, float] = {}

    def take(self, counts: Mapping[Key, float], *, anew: bool) -> None:
        """Add what ``counts`` have risen by, from 0 where they begin ``anew``."""
        before = {} if anew else self._newest
        for key, count in counts.items():
            # A Counter's values are whole by its annotations only.
            self[key] += max(0.0, count - before.get(key, 0.0))  # type: ignore[assignment]
        self._newest = counts


def unopened_name(device_index: int) -> str:
    """What stands for the UUID of a GPU that could not be opened yet."""
    return f"unopened-{device_index}"


class GpuLedger:
    """``monotonic_offset`` is the sidecar's clock less CLOCK_MONOTONIC."""

    def __init__(self, monotonic_offset: float) -> None:
        self.newest: Frame | None = None
        self.newest_at: float | None = None
        """When it was made, by the sidecar's clock."""
        self.looked_at: float | None = None
        """When the newest was made whose sampler knew which GPUs there are."""
        self.errors: Totals[tuple[str, str, str]] = Totals()
        """By GPU and group, both empty for what belongs to none, and reason."""
        self.spent: Totals[str] = Totals()
        """``cpu`` and ``driver``, in seconds."""
        self._offset = monotonic_offset
        self._roll = GpuRoll()
        self._unopened: tuple[Unopened, ...] = ()
        self._sampler_awake_since = 0.0

    def take(self, frame: Frame) -> None:
        """Take a frame; frames come in order."""
        anew = self.newest is None or frame.started_at != self.newest.started_at
        if self.newest is not None and not anew and frame.at - self.newest.at > ASLEEP_SECONDS:
            self._sampler_awake_since = frame.at + self._offset
        self.newest = frame
        failures = {("", "", reason): count for reason, count in frame.errors_total}
        for sample in frame.gpus:
            uuid = sample.identity.uuid
            failures |= {(uuid, group, reason): count for group, reason, count in sample.errors_total}
        self.errors.take(failures, anew=anew)
        if frame.own is not None:
            self.spent.take({"cpu": frame.own.cpu_seconds, "driver": frame.own.driver_seconds}, anew=anew)
        now = self.newest_at = frame.at + self._offset
        if frame.trouble is None and frame.gpus_expected is not None:
            self.looked_at = now
            self._unopened = frame.unopened
        self._roll = self._roll.after(map(self._by_our_clock, frame.gpus), now)

    def samples(
        self, now: float, silent_because: str = Reason.HUNG, *, awake_since: float = 0.0
    ) -> tuple[GpuSample, ...]:
        """All GPUs at ``now``, by the sidecar's clock; ``silent_because`` is why no frames come, should none do.

        ``awake_since`` is since when the sidecar has run without a gap: nothing grows old over one, nor over
        one of the sampler's.
        """
        awake_since = max(awake_since, self._sampler_awake_since)
        known = (
            self._shown(sample, now, silent_because, awake_since) for sample in self._roll.samples.values()
        )
        return (*known, *self._never_opened(now))

    def _never_opened(self, now: float) -> Iterator[GpuSample]:
        """GPUs that the driver counts and that could not be opened ever: nothing but their index is known."""
        identities = (sample.identity for sample in self._roll.samples.values())
        known = {each.device_index for each in identities if not each.parent_uuid}
        for index, reason in {each.device_index: each.reason for each in self._unopened}.items():
            if index not in known:
                yield GpuSample(now, GpuIdentity(unopened_name(index), index), up=False, down_because=reason)

    def _shown(self, told: GpuSample, now: float, silent_because: str, awake_since: float) -> GpuSample:
        sample = self._with_all_errors(told)
        reason = self._missing_because(told, now, silent_because, awake_since)
        return down(sample, now, reason) if reason else sample

    def _missing_because(self, last: GpuSample, now: float, silent_because: str, awake_since: float) -> str:
        """Why the last sample says nothing of ``now``; empty where it does."""
        frame, is_old = self.newest, now - max(last.at, awake_since) > HUNG_SECONDS
        is_in_frame = not self._roll.is_missing(last.identity.uuid)
        if frame is not None and frame.trouble is not None:
            return frame.trouble.reason if is_old or not is_in_frame else ""
        if frame is None or now - max(frame.at + self._offset, awake_since) > HUNG_SECONDS:
            return silent_because if is_old else ""
        if is_in_frame:
            return Reason.HUNG if is_old else ""
        if frame.gpus_expected is None:  # a new sampler has not looked round yet
            return silent_because if is_old else ""
        index = last.identity.device_index
        return next((each.reason for each in frame.unopened if each.device_index == index), Reason.GONE)

    def _by_our_clock(self, sample: GpuSample) -> GpuSample:
        xid_last_at, nvlink = sample.xid_last_at, sample.nvlink
        if nvlink is not None and nvlink.read_at is not None:
            nvlink = nvlink._replace(read_at=nvlink.read_at + self._offset)
        return sample._replace(
            at=sample.at + self._offset,
            nvlink=nvlink,
            reader_started_at=sample.reader_started_at + self._offset,
            xid_last_at=None if xid_last_at is None else xid_last_at + self._offset,
        )

    def _with_all_errors(self, sample: GpuSample) -> GpuSample:
        uuid = sample.identity.uuid
        if not self.errors:  # as nearly always, and each sample has been made anew already
            return sample
        errors = tuple(
            (group, reason, float(count)) for (of, group, reason), count in self.errors.items() if of == uuid
        )
        return sample._replace(errors_total=errors)
