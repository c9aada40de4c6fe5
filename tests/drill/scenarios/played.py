"""Scenes played once and kept in memory: what signals said and what was true, second by second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from drill.playing.play import Play
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from drill.second import EngineSecond, Second


@dataclass(frozen=True)
class Played:
    """``seconds[i]`` and ``said[i]`` are of second i + 1; ``said`` by name and labels, peaks left out."""

    scene: Scene
    seconds: Sequence[Second]
    said: Sequence[dict[tuple[str, tuple[str, ...]], float]]

    @property
    def onset(self) -> float:
        """Of the first episode."""
        return self.scene.episodes[0].onset_seconds

    @property
    def end(self) -> float:
        """Of the first episode."""
        return self.scene.episodes[0].end_seconds

    def values(self, name: str, *labels: str, start: float = 0.0, until: float = 1e9) -> list[float]:
        """What a signal said after ``start`` up to ``until``, of all series whose labels hold these."""
        return [
            value
            for second, said in zip(self.seconds, self.said, strict=True)
            if start < second.seconds <= until
            for (called, found), value in said.items()
            if called == name and set(labels) <= set(found)
        ]

    def true(
        self, of: Callable[[EngineSecond], float], engine: str, start: float = 0.0, until: float = 1e9
    ) -> list[float]:
        """What was true of an engine."""
        return [
            of(each)
            for second in self.seconds
            if start < second.seconds <= until
            for each in second.engines
            if each.name == engine
        ]


@lru_cache(maxsize=4)
def played(name: str, seconds: int | None = None, setting: Setting | None = None, *others: str) -> Played:
    """A scenario at its small size, cut off after so many seconds."""
    setting = setting or Setting()
    scene = SCENARIOS[name].scene(setting, [SCENARIOS[other] for other in others])
    cut = replace(scene, seconds=min(scene.seconds, seconds or scene.seconds))
    truth, said = [], []
    for moment in Play(cut, setting.seed).moments():
        truth.append(moment.second)
        said.append(
            {
                (value.signal.name, value.labels): value.value
                for value in moment.snapshot.values
                if not value.is_peak
            }
        )
    return Played(scene, truth, said)
