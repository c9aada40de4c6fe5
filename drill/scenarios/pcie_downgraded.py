"""The PCIe links of one engine's GPUs fall back to fewer lanes, as after a bad contact, until the machine is mended.

Nothing is slow at first: who doesn't copy doesn't notice. The link says it, and the capacity that swapping or
offloading would need is gone.
"""

from __future__ import annotations

from alerts.causes import Cause
from drill.actions import NarrowLink
from drill.scenarios.chat import END, ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting

_LANES = 4


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    name = scene.one_engine()
    lanes = scene.engines[name].gpu.pcie_width
    return scene.with_plan((ONSET, NarrowLink(name, _LANES)), (END, NarrowLink(name, lanes))).with_episode(
        Episode("pcie-downgraded", Cause.PCIE_DOWNGRADED, ONSET, END, (name,))
    )


PCIE_DOWNGRADED = Scenario(
    "pcie-downgraded",
    Cause.PCIE_DOWNGRADED,
    "The PCIe links of an engine's GPUs run with 4 of their lanes for four minutes.",
    chat_fleet,
    _trouble,
    alerts=("PcieLinkDowngraded",),
)
