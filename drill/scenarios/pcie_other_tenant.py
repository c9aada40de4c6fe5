"""Another tenant of the machine fills the PCIe links of one engine's GPUs: saturation that is not swap.

The links of its GPUs stand near what they can carry while the engine swaps nothing: the bytes are unexplained. Tokens
go on as before where all-reduces have NVLink and nothing is offloaded; where they don't, they suffer.
"""

from __future__ import annotations

from alerts.causes import Cause
from drill.actions import OtherTenant
from drill.scenarios.chat import END, ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting

_SHARE = 0.95
"""Of what a link carries."""


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    name = scene.one_engine()
    rate = _SHARE * scene.engines[name].gpu.pcie_bytes_per_second
    return scene.with_plan((ONSET, OtherTenant(name, rate)), (END, OtherTenant(name, 0.0))).with_episode(
        Episode("pcie-other-tenant", Cause.PCIE_OTHER_TENANT, ONSET, END, (name,))
    )


PCIE_OTHER_TENANT = Scenario(
    "pcie-other-tenant",
    Cause.PCIE_OTHER_TENANT,
    "Somebody else fills the PCIe links of an engine's GPUs for four minutes.",
    chat_fleet,
    _trouble,
    alerts=("PcieSaturatedByOthers",),
)
