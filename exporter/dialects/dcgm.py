"""Follows dcgm-exporter's pages: what each GPU did from one collection to the next. Pure, no clock.

The exporter collects on a schedule of its own, every 30 s unless told otherwise, and shows the same numbers
until then. So a page whose numbers stand still is the same collection once more, and what a total rose by
is spread over the time between two collections, not over the second in which it was seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from exporter.dialects.dcgm_names import ENERGY, XID, Field
from exporter.dialects.dcgm_page import Slot, Told, most_of_link, told
from exporter.dialects.dcgm_sample import Reading, sample_of
from exporter.dialects.dcgm_trust import doubted
from exporter.gpu_sample import GpuSample
from exporter.sampler.reasons import Reason

IMPLAUSIBLE = "implausible"
"""Why a value was not taken, in ``errors_total``: larger than it can be."""

SLOW_SECONDS = 5.0
"""Collections further apart than this are told again at each read; others are a sample each."""

_SETTLE_SECONDS = 2.5
"""A slow exporter's page counts once it comes a second time, or after this: it may still be collecting."""
_QUICK_STEPS = 10
"""So many collections in a row have to come without that before the exporter no longer counts as slow."""
_STANDSTILL_SECONDS = 120.0
_STANDSTILL_STEPS = 3.0
"""So long, and for so many collections, a GPU's energy counter may stand still before its numbers are old."""
_NEVER_MOVED_SECONDS = 300.0
"""The same for numbers that never were others: how far apart collections are is not known then."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What is remembered of one GPU or MIG instance, as of its newest collection, ``collected_at``.

    ``stood`` are the totals that stood still since the one before, ``moved`` the fields that were ever
    above 0; ``energy_at`` is when its energy counter last rose, ``moved_at`` when any of its numbers was last
    another. Of XIDs the last one told, and the events that were seen.
    """

    told: Told
    reading: Reading
    collected_at: float
    started_at: float
    moved_at: float
    stood: frozenset[Field] = frozenset()
    moved: frozenset[Field] = frozenset()
    energy_at: float | None = None
    xid: int = 0
    xids: Mapping[int, float] = field(default_factory=dict)
    xid_last_at: float | None = None
    errors: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Memory:
    """All that is remembered from page to page.

    ``changed_at`` is the start of the read that first showed the newest collection; ``step_seconds`` the
    time between it and the one before, None before there were two. ``slow`` is whether numbers were seen
    to stand still for long; ``quick_steps`` how many collections came since. ``unsettled`` is a page that differs
    and has yet to come again, first seen at ``unsettled_at``.
    """

    gpus: Mapping[str, Followed] = field(default_factory=dict)
    shown: Mapping[str, Mapping[Field, float]] = field(default_factory=dict)
    changed_at: float | None = None
    step_seconds: float | None = None
    slow: bool = False
    quick_steps: int = 0
    unsettled: Mapping[str, Mapping[Field, float]] = field(default_factory=dict)
    unsettled_at: float | None = None
    samples: tuple[GpuSample, ...] = ()

    def only(self, uuids: Collection[str]) -> Memory:
        """Without the GPUs that nobody knows any more."""
        return replace(self, gpus={uuid: each for uuid, each in self.gpus.items() if uuid in uuids})


def follow(memory: Memory, readings: Iterable[tuple[Slot, float]], at: float) -> Memory:
    """The memory after a page whose read began at ``at``; its ``samples`` are what to show.

    Samples keep the time of the read that first showed their numbers. Only where the exporter is slow,
    or stands still, they are told again with the time of the newest read, without the running totals,
    which would rise by half a minute's bytes in one second: their mean rates stand for them.
    """
    page = told(readings)
    shown = {uuid: each.values for uuid, each in page.items()}
    if shown == memory.shown:
        still = at - (at if memory.changed_at is None else memory.changed_at)
        if still <= SLOW_SECONDS:
            return memory
        memory = replace(memory, slow=True, quick_steps=0, unsettled={}, unsettled_at=None)
    elif memory.slow and shown != memory.unsettled and not _is_overdue(memory, at):
        since = at if memory.unsettled_at is None else memory.unsettled_at
        return replace(memory, unsettled=shown, unsettled_at=since)
    else:
        since = at if memory.unsettled_at is None or shown != memory.unsettled else memory.unsettled_at
        gpus = {uuid: _collected(memory.gpus.get(uuid), each, since) for uuid, each in page.items()}
        memory = _stepped(replace(memory, gpus={**memory.gpus, **gpus}, shown=shown), since)
    step = memory.step_seconds or 0.0
    samples = tuple(_sample(memory.gpus[uuid], at, step, totals=not memory.slow) for uuid in page)
    return replace(memory, samples=samples)


def stands_still(memory: Memory) -> bool:
    """Whether no GPU of the page has numbers that are still of now: its exporter, or what that asks, hangs."""
    whole = [sample for sample in memory.samples if not sample.identity.parent_uuid]
    return bool(whole) and all(sample.down_because == Reason.STALE for sample in whole)


def _is_overdue(memory: Memory, at: float) -> bool:
    return memory.unsettled_at is not None and at - memory.unsettled_at >= _SETTLE_SECONDS


def _stepped(memory: Memory, at: float) -> Memory:
    """After a collection that was first shown at ``at``."""
    step = None if memory.changed_at is None else at - memory.changed_at
    quick_steps = memory.quick_steps + 1
    return replace(
        memory,
        changed_at=at,
        step_seconds=step,
        slow=memory.slow and quick_steps < _QUICK_STEPS,
        quick_steps=quick_steps,
        unsettled={},
        unsettled_at=None,
    )


def _collected(before: Followed | None, now: Told, at: float) -> Followed:
    """One GPU after a collection."""
    errors = dict(before.errors) if before else {}
    for group, count in now.implausible.items():
        errors[group, IMPLAUSIBLE] = errors.get((group, IMPLAUSIBLE), 0.0) + count
    moved = frozenset(each for each, value in now.values.items() if value > 0)
    if before is None:
        doubt = doubted(now.values, {}, frozenset(), moved)
        xid = int(now.values.get(XID, 0.0))
        # what stands there at first was before our time: told of, as 0 events seen
        xids = {xid: 0.0} if xid else {}
        reading = Reading(now.values, {}, doubt.fields, float(doubt.disagreement))
        return Followed(now, reading, at, at, at, moved=moved, xid=xid, xids=xids, errors=errors)
    moved |= before.moved
    then = before.told.values
    changes = {each: value - then[each] for each, value in now.values.items() if each.total and each in then}
    restarted = any(change < 0 for change in changes.values())
    rises = {} if restarted else changes
    doubt = doubted(now.values, rises, before.stood, moved)
    seconds = at - before.collected_at
    rates = {each: rise / seconds for each, rise in rises.items()} if seconds > 0 else {}
    most = most_of_link(now.values)
    for each in [each for each, rate in rates.items() if each.group == "pcie" and rate > most]:
        del rates[each]
        errors["pcie", IMPLAUSIBLE] = errors.get(("pcie", IMPLAUSIBLE), 0.0) + 1
    disagreements = before.reading.disagreements_total + doubt.disagreement
    followed = replace(
        before,
        told=now,
        reading=Reading(now.values, rates, doubt.fields, disagreements),
        collected_at=at,
        started_at=at if restarted else before.started_at,
        moved_at=before.moved_at if now.values == then else at,
        stood=frozenset(each for each, rise in rises.items() if not rise),
        moved=moved,
        energy_at=at if changes.get(ENERGY, 0.0) > 0 else before.energy_at,
        xids={} if restarted else before.xids,  # counted since started_at, as all the rest
        errors=errors,
    )
    return _after_xid(followed, now.values.get(XID), at)


def _after_xid(gpu: Followed, told_xid: float | None, at: float) -> Followed:
    """The last XID stands there until the next, or until DCGM starts again: only its changes are events."""
    if told_xid is None or told_xid == gpu.xid:
        return gpu
    xid = int(told_xid)
    if not xid:
        return replace(gpu, xid=0)
    return replace(gpu, xid=xid, xids={**gpu.xids, xid: gpu.xids.get(xid, 0.0) + 1}, xid_last_at=at)


def _sample(gpu: Followed, at: float, step: float, *, totals: bool) -> GpuSample:
    counted_at, least = gpu.energy_at, _STANDSTILL_SECONDS
    if counted_at is None and gpu.told.values.get(ENERGY):  # it may never have been seen to count at all
        counted_at, least = gpu.moved_at, _NEVER_MOVED_SECONDS
    patience = max(least, _STANDSTILL_STEPS * step)
    if counted_at is not None and at - counted_at > patience:
        sample = GpuSample(at, gpu.told.identity, up=False, down_because=Reason.STALE)
    else:
        sample = sample_of(gpu.told.identity, gpu.reading, at, totals=totals)
    return sample._replace(
        reader_started_at=gpu.started_at,
        xids_total=tuple(sorted(gpu.xids.items())),
        xid_last_at=gpu.xid_last_at,
        errors_total=tuple((*key, count) for key, count in sorted(gpu.errors.items())),
    )
