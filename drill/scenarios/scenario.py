"""A scenario: a fleet that is well, and what goes wrong in it. Scenarios compose and move.

    scene = SCENARIO.scene(Setting(), others=[OTHER])

A new one is a file beside this, and one line in ``catalogue.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import getdoc

from alerts.causes import Cause
from drill.scenarios.published import Published
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting


@dataclass(frozen=True, slots=True)
class Scenario:
    """``cause`` None: nothing goes wrong, whatever it looks like. ``summary``: one sentence.

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

    @property
    def story(self) -> str:
        """What happens and what a person would see, as its file begins."""
        return getdoc(sys.modules[self.trouble.__module__]) or ""

    def scene(self, setting: Setting, others: Sequence[Scenario] = ()) -> Scene:
        """Its fleet with its trouble, and the troubles of others on the same fleet."""
        scene = self.trouble(self.fleet(setting), setting)
        for other in others:
            scene = other.trouble(scene, setting)
        return scene
