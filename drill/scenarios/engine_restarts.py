"""An engine's process dies, is started again, takes load for a while, and dies again: a crash loop.

As with a host whose memory limit is too low, or a kernel that fails on some batch: its supervisor starts it each time,
and each time it loses what it had and takes a minute to load. ``engine_restarts_total`` rises, the source is down
meanwhile, requests in it fail, and its load goes to the others and back.
"""

from __future__ import annotations

from dataclasses import replace

from alerts.causes import Cause
from drill.actions import Crash
from drill.scenarios.chat import ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting

_START_SECONDS = 60.0
_LIVES_SECONDS = 45.0
"""From a start to the next death."""
_DEATHS = 4


def _fleet(setting: Setting) -> Scene:
    return replace(chat_fleet(setting), start_seconds=_START_SECONDS)


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    name = scene.one_engine(stops=True)
    deaths = [ONSET + number * (scene.start_seconds + _LIVES_SECONDS) for number in range(_DEATHS)]
    deaths = [at for at in deaths if at + scene.start_seconds < scene.seconds]
    return scene.with_plan(*((at, Crash(name)) for at in deaths)).with_episode(
        Episode("engine-restarts", Cause.ENGINE_RESTARTS, ONSET, deaths[-1] + scene.start_seconds, (name,))
    )


ENGINE_RESTARTS = Scenario(
    "engine-restarts",
    Cause.ENGINE_RESTARTS,
    "An engine dies and is started again, four times within six minutes.",
    _fleet,
    _trouble,
    alerts=("EngineRestarting",),
)
