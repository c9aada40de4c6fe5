"""Plays a scene: what happened in each second, what the sidecar's sources showed, and what it made of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drill.scenarios.scene import Scene
from drill.second import Second
from drill.watching.watch import Watch
from exporter.observation import Observation
from exporter.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Moment:
    """One second: the truth, what sources showed at its end, and the cycle's values."""

    second: Second
    observations: tuple[Observation, ...]
    snapshot: Snapshot


class Play:
    """Of a scene, once. ``watch`` is the sidecar; the same scene and seed give the same moments, bit for bit."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene = scene
        self.watch = Watch(scene, seed)
        self._fleet = scene.fleet(seed)

    def moments(self) -> Iterator[Moment]:
        """All of them, in order."""
        for second in self._fleet.run(self.scene.seconds):
            observations = self.watch.observe(second)
            yield Moment(second, tuple(observations), self.watch.cycle(observations, second.seconds))
