"""One engine as the sidecar's source shows it: late under load, gone when it is dead, blind where its metrics are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from drill.expose.observed import Served
from drill.expose.release import Release
from drill.expose.server import Server
from drill.expose.stalls import Stalls
from drill.scenarios.scene import Renamed, Upgrade
from drill.second import EngineSecond
from exporter.observation import ENGINE, Observation, SourceStatus
from exporter.sample import EngineSample

DEADLINE_SECONDS = 10.0
"""For a whole read, as the sidecar has it unless told otherwise."""
_CYCLE_AFTER_SECONDS = 0.25
"""A cycle comes so long after the reads began: what takes longer is seen a second later."""


@dataclass(slots=True)
class _Read:
    began: float
    seconds: float


class WatchedEngine:
    """``engine`` as it begins with ``release``. ``epoch``: the drill's 0 in seconds since the epoch."""

    def __init__(
        self, engine: str, release: Release, epoch: float, seed: int, upgrades: Sequence[Upgrade] = ()
    ) -> None:
        self.name = engine
        self.server: Server | None = None
        """Of the engine's life now; None while it has none."""
        self._release = release
        self._epoch = epoch
        self._upgrades = upgrades
        self._renamed: tuple[Renamed, ...] = ()
        self._stalls = Stalls(seed)
        self._lives: tuple[int, ...] = ()
        self._read: _Read | None = None
        self._sample: EngineSample | None = None
        self._answering = False
        self._last_error = ""
        self._errors: dict[str, int] = {}

    def see(self, first: EngineSecond, *others: EngineSecond) -> None:
        """What the engine did in a second; ``others``: its further data-parallel ranks, without which it is none."""
        ranks = (first, *others)
        gauges = [rank.gauges for rank in ranks if rank.gauges is not None]
        if len(gauges) < len(ranks):
            self.server, self._lives = None, ()
            return
        lives = tuple(rank.life for rank in ranks)
        if lives != self._lives:
            self._lives = lives
            started = max(rank.started_seconds for rank in ranks)
            self._begin(started)
            name = first.config.model.name
            self.server = Server(Served(first.config, self._release, name, self._epoch, started), gauges)
        if self.server is not None:
            for number, rank in enumerate(ranks):
                for result in rank.results:
                    self.server.see(result, gauges[number], number)

    def observe(self, now: float, *, busy: bool) -> Observation:
        """What the source shows at the cycle of ``now`` (the drill's seconds); ``busy``: more is asked than runs."""
        if self._read is None:
            self._read = _Read(now, self._stalls.seconds(busy=busy) if self.server else 0.0)
        read = self._read
        elapsed = now + _CYCLE_AFTER_SECONDS - read.began
        if elapsed >= min(read.seconds, DEADLINE_SECONDS):
            self._read = None
            self._end(read)
        at = None if self._sample is None else self._sample.at
        status = SourceStatus(
            self.name,
            ENGINE,
            self._answering,
            at,
            None if self._sample is None else self._sample.read_seconds,
            tuple(self._errors.items()),
            self._last_error,
        )
        return Observation(status, self._sample)

    def page(self) -> str | None:
        """What its ``/metrics`` answers now; None while nobody listens."""
        if self.server is None:
            return None
        page = self.server.page()
        for _, metric, now_called in self._renamed:
            page = page.replace(metric, now_called)
        return page

    def _end(self, read: _Read) -> None:
        if self.server is None:
            self._fail("refused", "nobody listens there: start the engine")
        elif read.seconds > DEADLINE_SECONDS:
            self._fail("timeout", f"no answer within {DEADLINE_SECONDS:g} s")
        else:
            sample = self.server.sample(self.name, self._epoch + read.began, read.seconds)
            self._sample = self._blinded(sample)
            self._answering, self._last_error = True, ""

    def _fail(self, reason: str, words: str) -> None:
        self._answering, self._last_error = False, words
        self._errors[reason] = self._errors.get(reason, 0) + 1

    def _begin(self, started_seconds: float) -> None:
        """A life begins: of the newest release that was rolled out by then."""
        for upgrade in self._upgrades:
            if upgrade.seconds <= started_seconds:
                self._release, self._renamed = upgrade.release or self._release, upgrade.renamed

    def _blinded(self, sample: EngineSample) -> EngineSample:
        if not self._renamed:
            return sample
        nothing: dict[str, Any] = {
            name: () if isinstance(getattr(sample.ranks[0], name), tuple) else None
            for name, _, _ in self._renamed
        }
        return replace(sample, ranks=tuple(replace(rank, **nothing) for rank in sample.ranks))
