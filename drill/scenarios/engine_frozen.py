"""An engine's core stands still for three minutes while its front end goes on answering: a hung kernel, a lost lock.

Its gauges show the last iteration for ever, requests go on being sent to it and get nothing. Clients time out.
"""

from __future__ import annotations

from alerts.causes import Cause
from drill.actions import Freeze
from drill.scenarios.chat import ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting

_SECONDS = 180.0


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    name = scene.one_engine()
    return scene.with_plan((ONSET, Freeze(name, _SECONDS))).with_episode(
        Episode("engine-frozen", Cause.ENGINE_FROZEN, ONSET, ONSET + _SECONDS, (name,))
    )


ENGINE_FROZEN = Scenario(
    "engine-frozen",
    Cause.ENGINE_FROZEN,
    "An engine stands still for three minutes with sequences in it.",
    chat_fleet,
    _trouble,
    alerts=("EngineFrozen", "DecodeStalled"),
)
