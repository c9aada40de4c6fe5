"""A scenario: a fleet that is well, and what goes wrong in it. Scenarios compose and move.

    scene = SCENARIO.scene(Setting(), others=[OTHER])

A new one is a file beside this, and one line in ``catalogue.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from inspect import getdoc

from alerts.causes import Cause
from drill.scenarios.possible import possible
from drill.scenarios.published import Published
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting, SettingError

_SEEDS_APART = 1_000_003


@dataclass(frozen=True, slots=True)
class Scenario:
    """``cause`` None: nothing goes wrong, whatever it looks like. ``summary``: one sentence.

    ``alerts``: names of its own, which have to fire on it where nobody moves it. Others fire beside them, of what
    follows from it: clients that wait, neighbours that get the load.

    ``fleet`` makes the fleet under the load that it is there for; ``trouble`` adds to any scene what goes wrong, its
    episode among it. Both may raise SettingError or EngineConfigError for a setting that can't be.
    """

    name: str
    cause: Cause | None
    summary: str
    fleet: Callable[[Setting], Scene]
    trouble: Callable[[Scene, Setting], Scene]
    published: Published | None = None
    """What is known of it from elsewhere."""
    alerts: tuple[str, ...] = ()
    takes_load_ratio: bool = False
    """Whether more or less of it is the same trouble in small or large."""

    @property
    def story(self) -> str:
        """What happens and what a person would see, as its file begins."""
        return getdoc(sys.modules[self.trouble.__module__]) or ""

    def scene(self, setting: Setting, others: Sequence[Scenario] = ()) -> Scene:
        """Its fleet with its trouble, and the troubles of others on the same fleet, for as long as they need it.

        Each has a chance of its own: streams of one seed share their contents. Raises SettingError, and
        EngineConfigError as ``fleet`` and ``trouble`` do.
        """
        if setting.load_ratio != 1 and not self.takes_load_ratio:
            raise SettingError(f"{self.name} is no matter of more or less load: leave the load as it is")
        stories = [each.trouble.__module__ for each in (self, *others)]
        for other in others:
            if stories.count(other.trouble.__module__) > 1:
                raise SettingError(f"{other.name} goes wrong twice: take it once")
        needed = (other.fleet(setting).seconds for other in others if other.cause is not None)
        scene = self.fleet(replace(setting, least_seconds=max(needed, default=0)))
        for place, each in enumerate((self, *others)):
            scene = each.trouble(scene, replace(setting, seed=setting.seed + place * _SEEDS_APART))
        return possible(scene)
