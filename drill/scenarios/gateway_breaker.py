"""A circuit breaker of the gateway is set below what is in flight: what comes beyond it is turned away at once.

As Envoy's default of 1,024 requests to a cluster, which a fleet grows beyond one day. Streams of minutes hold their
places, ``gateway_breaker_open`` stands at 1, requests end as overflow (503), and engines have room. Clients come again.
"""

from __future__ import annotations

from alerts.causes import Cause
from drill.actions import LimitInFlight
from drill.scenarios.chat import END, ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting

_SHARE = 0.4


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    return scene.with_plan((ONSET, LimitInFlight(_SHARE, END - ONSET))).with_episode(
        Episode("gateway-breaker", Cause.GATEWAY_BREAKER, ONSET, END, scene.names)
    )


GATEWAY_BREAKER = Scenario(
    "gateway-breaker",
    Cause.GATEWAY_BREAKER,
    "A breaker of the gateway opens at less than half of what is in flight, and the engines have room.",
    chat_fleet,
    _trouble,
    alerts=("GatewayBreakerOpen",),
)
