"""The gateway's rate limit is set below what comes in: two of three requests are turned away from engines with room.

Rejections rise, engines empty, nothing waits. Clients come again, so that the gateway sees more requests than before.
"""

from __future__ import annotations

from alerts.causes import Cause
from drill.actions import ChangeGateway
from drill.scenarios.chat import END, ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting

_SHARE = 0.3
"""Of what came in the time before, let through."""
_LEAST = 0.05


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    came = sum(1 for _ in scene.load.between(0.0, ONSET)) / ONSET
    tight = {"rate_per_second": max(_LEAST, _SHARE * came), "burst": 1.0}
    return scene.with_plan((ONSET, ChangeGateway(tight, END - ONSET))).with_episode(
        Episode("gateway-too-tight", Cause.GATEWAY_TOO_TIGHT, ONSET, END, scene.names)
    )


GATEWAY_TOO_TIGHT = Scenario(
    "gateway-too-tight",
    Cause.GATEWAY_TOO_TIGHT,
    "The gateway lets through a third of what comes, and the engines stand half empty.",
    chat_fleet,
    _trouble,
    alerts=("GatewayTooTight", "GatewayRejecting"),
)
