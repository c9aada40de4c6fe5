"""A scenario played with one engine: what was true in each second, and what the sidecar made of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from drill.playing.play import Moment, Play
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from drill.second import EngineSecond

Values = dict[tuple[str, ...], float]
"""By the signal's name, then those of its labels that aren't the engine's, its rank, its model or the gateway's."""
_WHOSE = {"0", "gateway", "engines"}


@dataclass(frozen=True, slots=True)
class Seen:
    """The scene and its moments, the first of which ends at second 1."""

    scene: Scene
    moments: tuple[Moment, ...]
    values: tuple[Values, ...]

    @property
    def onset(self) -> int:
        """Of its first episode."""
        return round(self.scene.episodes[0].onset_seconds)

    @property
    def end(self) -> int:
        """Of its first episode."""
        return round(self.scene.episodes[0].end_seconds)

    def engine(self, start: int = 0, until: int | None = None) -> list[EngineSecond]:
        """The engine's seconds that end after ``start`` and by ``until``."""
        return [moment.second.engines[0] for moment in self.moments[start:until]]

    def signal(self, *name: str, start: int = 0, until: int | None = None) -> list[float]:
        """Its values after ``start`` and up to ``until``, of the seconds that have one."""
        return [values[name] for values in self.values[start:until] if name in values]

    def pairs(self, *name: str) -> Iterator[tuple[int, float]]:
        """Each second (an index of ``moments``) that has a value, and it."""
        for second, values in enumerate(self.values):
            if name in values:
                yield second, values[name]


def seen(scenario: Scenario, seconds: int | None = None, seed: int = 1) -> Seen:
    """``scenario`` at its small size with one engine, or its first ``seconds``."""
    scene = scenario.scene(Setting(seed=seed, engines=1))
    scene = replace(scene, seconds=seconds or scene.seconds)
    moments = tuple(Play(scene, seed).moments())
    return Seen(scene, moments, tuple(_values(scene, moment) for moment in moments))


def _values(scene: Scene, moment: Moment) -> Values:
    whose = _WHOSE | {
        name for engine, config in scene.engines.items() for name in (engine, config.model.name)
    }
    return {
        (each.signal.name, *(label for label in each.labels if label not in whose)): each.value
        for each in moment.snapshot.values
        if not each.is_peak
    }
