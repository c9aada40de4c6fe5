"""Makes the frame of each second out of what the threads have left, and keeps watch over what they cost."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable

from exporter.gpu_sample import GpuSample
from exporter.sampler.crew import Crew
from exporter.sampler.frame import ASLEEP_SECONDS, HUNG_SECONDS, Frame, Hung, Own
from exporter.sampler.gpu_reader import GpuReader
from exporter.sampler.pace import Pace
from exporter.sampler.reasons import Reason

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")


def resident_bytes() -> float:
    """What this process holds in memory."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - pathlib would take a megabyte
        return float(file.read().split()[1]) * _PAGE_BYTES


class FrameMaker:
    """Used by the main thread, which calls no library: ``next`` gives the frame of now."""

    def __init__(self, crew: Crew, pace: Pace, clock: Callable[[], float] = time.monotonic) -> None:
        self._crew, self._pace, self._clock = crew, pace, clock
        self._started_at = self._told_at = self._made_at = self._awake_since = clock()
        self._sequence = 0
        self._spent = (0.0, 0.0)
        self._hangs: Counter[tuple[str, str]] = Counter()
        self._hung: frozenset[Hung] = frozenset()

    def next(self) -> Frame:
        """The next one. Tells the pace what the time since the last one cost."""
        now, crew = self._clock(), self._crew
        if now - self._made_at > ASLEEP_SECONDS:
            self._awake_since = now
        self._made_at = now
        readers = crew.readers
        self._sequence += 1
        own = self._own(readers)
        self._tell_pace(now, own)
        hung = self._notice_hung(readers, now)
        return Frame(
            self._sequence,
            now,
            self._started_at,
            tuple(self._sample(reader) for reader in readers),
            crew.expected,
            crew.end.trouble if crew.end else crew.trouble(now),
            crew.library,
            own,
            crew.unopened,
            hung,
            tuple((reason, float(count)) for reason, count in list(crew.errors.items())),
        )

    @property
    def is_complete(self) -> bool:
        """Whether each GPU was read once, or it is known why none can be."""
        crew = self._crew
        if crew.trouble(self._clock()):
            return True
        return crew.expected is not None and all(reader.has_read for reader in crew.readers)

    def _sample(self, reader: GpuReader) -> GpuSample:
        sample = reader.sample
        if self._crew.events:
            sample = self._crew.events.with_xids(sample)
        uuid = sample.identity.uuid
        hangs = tuple(
            (group, Reason.HUNG, float(count)) for (of, group), count in self._hangs.items() if of == uuid
        )
        return sample._replace(errors_total=sample.errors_total + hangs) if hangs else sample

    def _notice_hung(self, readers: tuple[GpuReader, ...], now: float) -> tuple[Hung, ...]:
        """Calls that are out for long; each is counted once."""
        calls = [(reader.identity.uuid, reader.inside) for reader in readers]
        calls += [("", call) for call in self._crew.inside_calls()]
        hung = tuple(
            Hung(uuid, *call)
            for uuid, call in calls
            if call is not None and now - max(call[1], self._awake_since) > HUNG_SECONDS
        )
        for each in hung:
            if each in self._hung:
                continue
            if each.uuid:
                self._hangs[each.uuid, each.group] += 1
            else:
                self._crew.count(Reason.HUNG)
        self._hung = frozenset(hung)
        return hung

    def _own(self, readers: tuple[GpuReader, ...]) -> Own:
        intervals = [reader.fast_seconds for reader in readers]
        fast = [each for each in intervals if each is not None]
        driver = self._crew.driver_seconds + sum(reader.driver_seconds for reader in readers)
        return Own(time.process_time(), driver, resident_bytes(), max(fast, default=None))

    def _tell_pace(self, now: float, own: Own) -> None:
        seconds = now - self._told_at
        if seconds < 1 / 2:  # a frame out of turn
            return
        cpu, driver = self._spent
        self._pace.told((own.cpu_seconds - cpu) / seconds, max(0.0, own.driver_seconds - driver) / seconds)
        self._told_at, self._spent = now, (own.cpu_seconds, own.driver_seconds)
