"""The gateway tells no engine that a client left, and clients grow impatient: engines work on for nobody.

Half of the answers take longer than clients now wait. Each that is given up is generated to its end, with its blocks,
while its client asks again. ``orphan_sequences`` and ``orphan_kv_ratio`` rise, the gateway has fewer requests in flight
than the engines, which finish what nobody reads: ``client_aborts_total`` sees none of it, since no engine is told.
"""

from __future__ import annotations

from statistics import median

from alerts.causes import Cause
from drill.actions import ChangeClients, ChangeGateway
from drill.clients import Patience
from drill.scenarios.chat import PATIENT, chat_fleet
from drill.scenarios.fleets import request_seconds
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting
from drill.workload.lengths import Fixed

ONSET, END = 240.0, 480.0
_USAGE_RATIO = 0.5
_RETRIES = 1


def _fleet(setting: Setting) -> Scene:
    return chat_fleet(setting, clients=PATIENT)


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    came = list(scene.load.between(0.0, ONSET))
    prompt = Fixed(round(median(one.prompt_tokens for one in came)))
    answer = Fixed(round(median(one.output_tokens for one in came)))
    waits = min(request_seconds(config, prompt, answer, _USAGE_RATIO) for config in scene.engines.values())
    impatient = {
        "timeout_seconds": waits,
        "patience": Patience.ANSWER,
        "retries": _RETRIES,
        "backoff_seconds": 1.0,
    }
    return scene.with_plan(
        (ONSET, ChangeGateway({"passes_disconnects": False}, END - ONSET)),
        (ONSET, ChangeClients(impatient, END - ONSET)),
    ).with_episode(Episode("orphans", Cause.ORPHANS, ONSET, END, scene.names))


ORPHANS = Scenario(
    "orphans",
    Cause.ORPHANS,
    "The gateway keeps to itself that clients leave, and engines work on for nobody.",
    _fleet,
    _trouble,
    alerts=("OrphanedKv",),
)
