"""What stands before the gateway's limits grows slow, and who is turned away waits for that as well.

A filter that asks somebody else about each request (authorisation, a global rate limit) takes 1.5 s. A limit turns away
a few in a hundred, as it did before, and no longer within milliseconds: ``gateway_reject_p99_seconds`` is above 1 s.
Answers come so much later too, which no engine sees: their own times to first token are as they were.
"""

from __future__ import annotations

from dataclasses import replace

from alerts.causes import Cause
from drill.actions import ChangeGateway
from drill.scenarios.chat import END, ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting

_SECONDS = 1.5
_RATE_RATIO, _BURST = 1.5, 4.0
"""Of what comes, let through, and at once: bursts beyond are turned away."""
_LEAST = 0.05


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    gateway = scene.gateway
    if gateway.rate_per_second is None:
        came = sum(1 for _ in scene.load.between(0.0, ONSET)) / ONSET
        gateway = replace(gateway, rate_per_second=max(_LEAST, _RATE_RATIO * came), burst=_BURST)
    return (
        replace(scene, gateway=gateway)
        .with_plan((ONSET, ChangeGateway({"filter_seconds": _SECONDS}, END - ONSET)))
        .with_episode(Episode("gateway-slow", Cause.GATEWAY_SLOW, ONSET, END, scene.names))
    )


GATEWAY_SLOW = Scenario(
    "gateway-slow",
    Cause.GATEWAY_SLOW,
    "A filter of the gateway grows slow, and refusals take seconds instead of milliseconds.",
    chat_fleet,
    _trouble,
    alerts=("GatewayRejectsSlowly",),
)
