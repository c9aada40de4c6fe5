"""An engine loses blocks bit by bit: held by no sequence, never free again. Then the load goes home.

While it is busy, its usage is higher than that of its neighbours with as many sequences; once nobody asks for
anything, usage stays up with nothing running. A restart gets the blocks back.
"""

from __future__ import annotations

from alerts.causes import Cause
from drill.actions import LeakBlocks
from drill.scenarios.chat import ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting

_SHARE = 0.3
_LEAKS = 20
_EVERY_SECONDS = 10.0
_BUSY_SECONDS = 420.0


def _fleet(setting: Setting) -> Scene:
    scene = chat_fleet(setting)
    return scene.loaded(scene.load.between(0.0, _BUSY_SECONDS))


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    name = scene.one_engine()
    each = max(1, round(_SHARE * scene.engines[name].usable_blocks / _LEAKS))
    leaks = [(ONSET + number * _EVERY_SECONDS, LeakBlocks(name, each)) for number in range(_LEAKS)]
    return scene.with_plan(*leaks).with_episode(
        Episode("kv-leak", Cause.KV_LEAK, ONSET, float(scene.seconds), (name,))
    )


KV_LEAK = Scenario(
    "kv-leak",
    Cause.KV_LEAK,
    "An engine loses a third of its KV blocks within three minutes; later its load ends.",
    _fleet,
    _trouble,
    alerts=("KvLeaking",),
)
