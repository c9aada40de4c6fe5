"""An engine is upgraded amid the run, and a metric of it is called something that no dialect knows.

It is drained, gone for the time of a start, and back with all its signals but those of KV usage: absent, not zero.
Nothing is wrong with it, and alerts on what is absent now would never fire again.
"""

from __future__ import annotations

from dataclasses import replace

from alerts.causes import Cause
from drill.actions import Restart
from drill.scenarios.chat import ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Renamed, Scene, Upgrade
from drill.scenarios.setting import Setting
from drill.serving.config import Generation

_START_SECONDS = 60.0
_DRAIN_SECONDS = 30.0
_RENAMED = {
    Generation.V0: (Renamed("kv_usage_ratio", "vllm:gpu_cache_usage_perc", "vllm:gpu_kv_fill"),),
    Generation.V1: (Renamed("kv_usage_ratio", "vllm:kv_cache_usage_perc", "vllm:gpu_kv_fill"),),
}


def _fleet(setting: Setting) -> Scene:
    return replace(chat_fleet(setting), start_seconds=_START_SECONDS)


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    name = scene.one_engine(stops=True)
    renamed = _RENAMED[scene.engines[name].generation]
    upgraded = replace(scene, upgrades=(*scene.upgrades, Upgrade(ONSET, name, renamed=renamed)))
    return upgraded.with_plan((ONSET, Restart(name, drain_seconds=_DRAIN_SECONDS))).with_episode(
        Episode("metric-rename", Cause.METRIC_RENAME, ONSET, float(scene.seconds), (name,))
    )


METRIC_RENAME = Scenario(
    "metric-rename",
    Cause.METRIC_RENAME,
    "An engine is upgraded, and its KV usage is called something else from then on.",
    _fleet,
    _trouble,
    alerts=("SignalAbsent",),
)
