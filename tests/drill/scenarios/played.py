"""Scenes played once and kept in memory: what signals said and what was true, second by second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from drill.playing.play import Play
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from drill.second import EngineSecond, Second

ALONE = Setting(engines=1)
"""One engine, whose signals are the fleet's."""


@dataclass(frozen=True)
class Played:
    """``seconds[i]`` and ``said[i]`` are of second i + 1; ``said`` by name and labels, peaks left out."""

    scene: Scene
    seconds: Sequence[Second]
    said: Sequence[dict[tuple[str, tuple[str, ...]], float]]

    @property
    def onset(self) -> int:
        """Of the first episode."""
        return round(self.scene.episodes[0].onset_seconds)

    @property
    def end(self) -> int:
        """Of the first episode."""
        return round(self.scene.episodes[0].end_seconds)

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

    def engine(self, start: int = 0, until: int | None = None) -> list[EngineSecond]:
        """The first engine's seconds, as a slice: those that end after ``start`` and by ``until``."""
        return [second.engines[0] for second in self.seconds[start:until]]

    def signal(self, *name: str, start: int = 0, until: int | None = None) -> list[float]:
        """What the one series of a signal with these labels said, as a slice, of the seconds that have it."""
        rows = (self.at(second, *name) for second in range(len(self.seconds))[start:until])
        return [value for value in rows if value is not None]

    def pairs(self, *name: str) -> Iterator[tuple[int, float]]:
        """Each second (an index of ``seconds``) that has a value of it, and the value."""
        for second in range(len(self.seconds)):
            value = self.at(second, *name)
            if value is not None:
                yield second, value

    def at(self, second: int, name: str, *labels: str) -> float | None:
        """What the one series of a signal with these labels said in a second (an index); None: nothing."""
        found = [
            value
            for (called, its), value in self.said[second].items()
            if called == name and set(labels) <= set(its)
        ]
        assert len(found) <= 1, (name, labels)
        return found[0] if found else None


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
