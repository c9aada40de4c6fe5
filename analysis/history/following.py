"""Targets read page by page, as the sidecar's sources read theirs: what each has to show a cycle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from analysis.history.targets import Kind, Target
from exporter.dialects.dcgm import Memory, follow, stands_still
from exporter.dialects.dialect import Dialect
from exporter.dialects.gateway_dialect import AmbiguousError, Asked, GatewayDialect
from exporter.gateway_sample import GatewaySample
from exporter.observation import ENGINE, Observation, SourceStatus
from exporter.sample import EngineSample
from exporter.sources.gpu_roll import GpuRoll

_NO_PAGE = -1


class Follower(ABC):
    """One target: its reads in order of their ends, and the newest result, however old."""

    def __init__(self, target: Target, source: str) -> None:
        self.target = target
        self._source = source
        pages = target.pages
        ends = np.concatenate((pages.times + pages.read_seconds, pages.failed_at))
        order = np.argsort(ends, kind="stable")
        self.ends: list[float] = ends[order].tolist()
        """When each read ended, rising."""
        number = np.concatenate((np.arange(len(pages.times)), np.full(len(pages.failed_at), _NO_PAGE)))
        self._pages: list[int] = number[order].tolist()
        self._begins: list[float] = np.concatenate((pages.times, pages.failed_at))[order].tolist()
        self._next = 0
        self._answering = False
        self._last_at: float | None = None
        self._read_seconds: float | None = None
        self.problems: set[str] = set()
        """Why pages could not be read, each told once."""

    def read_until(self, now: float) -> int:
        """Read all that had come by then; says how many pages that were."""
        before = self._next
        while self._next < len(self.ends) and self.ends[self._next] <= now:
            self._next += 1
        new = self._pages[before : self._next]
        for page in new if self._needs_all else new[-1:]:
            self._answering = page != _NO_PAGE and self._read(page)
        return len(new)

    @property
    def has_begun(self) -> bool:
        """Whether any read has come to an end."""
        return self._next > 0

    def was_watched(self, now: float, patience_seconds: float) -> bool:
        """Whether a read had begun of late, or was under way: where nobody looked, nothing is known."""
        begun = self._begins[max(0, self._next - 1) : self._next + 1]
        return any(0 <= now - at <= patience_seconds for at in begun)

    def _read(self, page: int) -> bool:
        pages = self.target.pages
        at, seconds = float(pages.times[page]), float(pages.read_seconds[page])
        if not self._understand(page, at, seconds):
            return False
        self._last_at, self._read_seconds = at, seconds
        return True

    def _status(self, kind: str) -> SourceStatus:
        return SourceStatus(self._source, kind, self._answering, self._last_at, self._read_seconds)

    @property
    def _needs_all(self) -> bool:
        """Whether every page has to be read, or the newest one does."""
        return False

    @abstractmethod
    def _understand(self, page: int, at: float, seconds: float) -> bool:
        """Keep what a page says; False for one that a sidecar would have refused."""

    @abstractmethod
    def observe(self) -> Observation:
        """What it has to show now."""


class EngineFollower(Follower):
    """An engine."""

    def __init__(self, target: Target, dialect: Dialect[Any]) -> None:
        super().__init__(target, target.name)
        self._dialect = dialect
        self._sample: EngineSample | None = None

    def _understand(self, page: int, at: float, seconds: float) -> bool:
        sample = self._dialect.sample(
            self.target.pages.readings(page), engine=self.target.name, at=at, read_seconds=seconds
        )
        if not sample.ranks and not self.target.pages.speaks(page):
            return False
        self._sample = sample
        return True

    def observe(self) -> Observation:
        """Its newest sample."""
        return Observation(self._status(ENGINE), self._sample)


class GatewayFollower(Follower):
    """A gateway, asked for what its pages tell by themselves."""

    def __init__(self, target: Target, dialect: GatewayDialect[Any]) -> None:
        super().__init__(target, target.name)
        self._dialect = dialect
        self._sample: GatewaySample | None = None

    def _understand(self, page: int, at: float, seconds: float) -> bool:
        readings = self.target.pages.readings(page)
        try:
            self._sample = self._dialect.sample(
                readings, Asked(self.target.name), at=at, read_seconds=seconds
            )
        except AmbiguousError as error:
            self.problems.add(f"gateway {self.target.name}: {error.problem}")
            return False
        return True

    def observe(self) -> Observation:
        """Its newest sample."""
        return Observation(self._status(Kind.GATEWAY.value), gateway=self._sample)


class GpuFollower(Follower):
    """The GPUs of one dcgm-exporter."""

    def __init__(self, target: Target, source: str) -> None:
        super().__init__(target, source)
        self._memory = Memory()
        self._roll = GpuRoll()

    @property
    def _needs_all(self) -> bool:
        return True

    def _understand(self, page: int, at: float, seconds: float) -> bool:  # noqa: ARG002 - of all followers
        memory = follow(self._memory, self.target.pages.readings(page), at)
        self._roll = self._roll.after(memory.samples if memory.shown else (), at)
        if not memory.shown:
            return False
        self._memory = memory.only(self._roll.samples)
        return not stands_still(memory)

    def observe(self) -> Observation:
        """Its newest sample."""
        return Observation(self._status("dcgm"), gpus=self._roll.gpus)


def followers(targets: Sequence[Target]) -> Iterator[Follower]:
    """One for each target; a lone dcgm-exporter is called as the sidecar calls its own."""
    alone = sum(target.kind is Kind.GPUS for target in targets) == 1
    for target in targets:
        if target.engine is not None:
            yield EngineFollower(target, target.engine)
        elif target.gateway is not None:
            yield GatewayFollower(target, target.gateway)
        else:
            yield GpuFollower(target, "dcgm" if alone else target.name)
