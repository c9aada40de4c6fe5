"""The live loop: sources on their own schedule, a cycle at a fixed interval, one newest publication."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from exporter.observation import Observation
from exporter.own_signals import CYCLE_FAILURES, CYCLE_SECONDS, CYCLES, CYCLES_SKIPPED, SIGNALS
from exporter.publication import Board
from exporter.sample import STALE_AFTER_SECONDS
from exporter.snapshot import Snapshot, Value
from exporter.source_signals import SIGNAL_INFO
from exporter.sources.source import Source

State = TypeVar("State")

logger = logging.getLogger(__name__)

_OWN_INFO = tuple(
    Value(SIGNAL_INFO, (each.full_name, each.confidence.value, each.method), 1.0, is_peak=False)
    for each in SIGNALS
)
"""What the cycle tells of its own values; these come after it."""
_RESTART_SECONDS = 5.0
_REPEAT_LOG_SECONDS = 60.0


class Keeper(Protocol):
    """Takes every published snapshot and tells of itself in the next; must not wait and raises nothing."""

    def put(self, snapshot: Snapshot) -> None:
        """Take one snapshot."""

    def values(self) -> tuple[Value, ...]:
        """What the next snapshot shall say of the keeper, ``signal_info`` included."""


@dataclass(slots=True)
class LiveCycle(Generic[State]):
    """Runs the cycle over ``sources`` and keeps ``board`` up to date.

    ``step`` is :func:`exporter.cycle.step`; ``clock`` gives seconds since the epoch and never jumps.
    """

    sources: Sequence[Source]
    step: Callable[[State, float, Sequence[Observation]], tuple[State, Snapshot]]
    state: State
    clock: Callable[[], float]
    board: Board
    keeper: Keeper | None = None
    cycles: int = 0
    failures: int = 0
    skipped: int = 0
    _newest_good: Snapshot | None = None
    _logged: dict[str, float] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set)

    def run_once(self) -> None:
        """Run one cycle and publish it. Raises nothing: a cycle that breaks off is logged and counted.

        After a failure the last good values stay for as long as a source's would, then they vanish.
        """
        start = time.perf_counter()
        now = self.clock()
        observations = self._observe()
        self.cycles += 1
        try:
            self.state, snapshot = self.step(self.state, now, observations)
            self._newest_good = snapshot
        except Exception as error:  # noqa: BLE001 - one failure stays one failure
            self.failures += 1
            self._log(f"cycle: {error!r}", "the cycle broke off", error)
            snapshot = self._after_failure(now)
        for failure in snapshot.failures:
            text = f"{failure.phenomenon} of {failure.subject} can't be derived"
            self._log(f"{text}: {failure.error!r}", text, failure.error)
        for line in set(snapshot.warnings) - self._warned:
            logger.warning("%s", line)
            self._warned.add(line)
        own = (
            Value(CYCLES, (), float(self.cycles), is_peak=False),
            Value(CYCLE_FAILURES, (), float(self.failures), is_peak=False),
            Value(CYCLES_SKIPPED, (), float(self.skipped), is_peak=False),
            Value(CYCLE_SECONDS, (), time.perf_counter() - start, is_peak=False),
        )
        kept = self.keeper.values() if self.keeper else ()
        snapshot = replace(snapshot, values=(*snapshot.values, *own, *_OWN_INFO, *kept))
        self.board.publish(snapshot, tuple(each.status for each in observations))
        if self.keeper:
            self.keeper.put(snapshot)

    async def run(self, interval_seconds: float) -> None:
        """Run cycles until cancelled on a fixed schedule; those missed are skipped, not bunched.

        Sources begin their reads at the ticks too; a quarter of the interval later most have come to
        an end, so a cycle shows what was read just before and not the second before.
        """
        loop = asyncio.get_running_loop()
        start = loop.time() + interval_seconds / 4
        tick = 0
        while True:
            tick += 1
            await asyncio.sleep(start + tick * interval_seconds - loop.time())
            missed = int((loop.time() - start) / interval_seconds) - tick
            if missed > 0:
                self.skipped += missed
                tick += missed
            self.run_once()
            self._prepare(interval_seconds)

    def _prepare(self, seconds: float) -> None:
        """Have ready what is scraped before the next cycle."""
        try:
            self.board.prepare(time.monotonic(), seconds)
        except Exception as error:  # noqa: BLE001 - one failure stays one failure: the scrape meets it as well
            self._log(f"page: {error!r}", "the page can't be rendered", error)

    def _observe(self) -> list[Observation]:
        observations = []
        for source in self.sources:
            try:
                observations.append(source.observe())
            except Exception as error:  # noqa: BLE001 - one failure stays one failure
                self.failures += 1
                self._log(f"{source.name}: {error!r}", f"source {source.name} can't be observed", error)
        return observations

    def _after_failure(self, now: float) -> Snapshot:
        last = self._newest_good
        if last is not None and now - last.at <= STALE_AFTER_SECONDS:
            return last
        return Snapshot(at=now, values=(), ready=False)

    def _log(self, key: str, text: str, error: Exception) -> None:
        """Log each failure with its traceback, but the same one at most once a minute."""
        now = time.monotonic()
        if now - self._logged.get(key, -_REPEAT_LOG_SECONDS) >= _REPEAT_LOG_SECONDS:
            self._logged = {each: at for each, at in self._logged.items() if now - at < _REPEAT_LOG_SECONDS}
            self._logged[key] = now
            logger.error("%s: %r", text, error, exc_info=error)


async def keep_running(source: Source) -> None:
    """Run ``source`` until cancelled; one that ends or breaks off is logged and started again."""
    while True:
        try:
            await source.run()
            logger.error("source %s ended; it is started again", source.name)
        except Exception:
            logger.exception("source %s broke off; it is started again", source.name)
        await asyncio.sleep(_RESTART_SECONDS)


async def read_all_once(sources: Sequence[Source]) -> None:
    """Let every source read once, all at the same time."""

    async def read(source: Source) -> None:
        try:
            await source.read_once()
        except Exception:
            logger.exception("source %s broke off", source.name)

    await asyncio.gather(*(read(source) for source in sources))
