"""A GPU falls off the bus (XID 79), its engine dies and can't be started again; the others get its load.

The GPU is down with a reason, the engine answers no more, the gateway sees connections refused. What is left of the
fleet may come under pressure, which is a consequence and not another cause.
"""

from __future__ import annotations

from alerts.causes import Cause
from drill.actions import LoseGpu
from drill.scenarios.chat import ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    name = scene.one_engine(stops=True)
    return scene.with_plan((ONSET, LoseGpu(name, 0))).with_episode(
        Episode("gpu-lost", Cause.GPU_LOST, ONSET, float(scene.seconds), (name,))
    )


GPU_LOST = Scenario(
    "gpu-lost",
    Cause.GPU_LOST,
    "A GPU falls off the bus, and its engine dies of it.",
    chat_fleet,
    _trouble,
    alerts=("CapacityGoneWithGpus", "GpuLost", "GpuXid", "EngineDown", "CapacityGone"),
)
