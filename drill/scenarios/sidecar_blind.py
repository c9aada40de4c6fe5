"""The driver of one machine hangs: the sidecar reads none of its GPUs for four minutes. The engine is well.

Signals of these GPUs hold for 15 s and vanish; the source is down and says why; the engine's own go on.
"""

from __future__ import annotations

from dataclasses import replace

from alerts.causes import Cause
from drill.scenarios.chat import END, ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Blindness, Episode, Scene
from drill.scenarios.setting import Setting


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    name = scene.one_engine()
    blind = replace(scene, blindness=(*scene.blindness, Blindness(name, ONSET, END)))
    return blind.with_episode(Episode("sidecar-blind", Cause.SIDECAR_BLIND, ONSET, END, (name,)))


SIDECAR_BLIND = Scenario(
    "sidecar-blind",
    Cause.SIDECAR_BLIND,
    "The driver of a machine hangs for four minutes, and its GPUs can't be read.",
    chat_fleet,
    _trouble,
    alerts=("SidecarBlind",),
)
