"""Honest load beyond what the engines can do: queues grow, nothing thrashes, and it ends when the load does.

The pools are full and hundreds of requests wait, time to first token is in minutes; but those that run go on as fast as
ever, a preemption comes with thousands of tokens, and what was asked for is answered once the load is less.
With a third of that load (``--load 0.3``) pools are full now and then, and first tokens still come in time.
"""

from __future__ import annotations

from alerts.causes import Cause
from drill.scenarios.chat import END, ONSET, PATIENT, chat_fleet, chat_load, chat_rate
from drill.scenarios.fleets import rising
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting
from drill.workload.synthetic import open_loop

_TIMES = 0.5
"""What comes over what keeps the pool full."""


def _fleet(setting: Setting) -> Scene:
    return chat_fleet(setting, clients=PATIENT)


def _trouble(scene: Scene, setting: Setting) -> Scene:
    more = setting.load_ratio * _TIMES * chat_rate(scene, 1.0)
    rate = rising(more, (ONSET, END), setting)
    return scene.with_load(open_loop(chat_load("burst"), rate, setting.seed + 1)).with_episode(
        Episode("overload", Cause.OVERLOAD, ONSET, END, scene.names)
    )


OVERLOAD = Scenario(
    "overload",
    Cause.OVERLOAD,
    "More than the engines can do for four minutes: honest queues, no thrashing.",
    _fleet,
    _trouble,
    alerts=("KvDemandBeyondPool", "KvExhaustionNear", "KvCachePressure", "SloFirstTokenBurnFast"),
    takes_load_ratio=True,
)
