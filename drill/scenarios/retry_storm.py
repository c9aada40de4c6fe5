"""A burst makes answers late; clients leave at their timeout and ask again at once, and the storm feeds itself.

What was computed for a client that leaves is thrown away, and its prompt comes once more: engines are as busy as they
can be, and few of their tokens reach anybody. ``retry_amplification_ratio`` (attempts over answers) rises to many,
``client_aborts_total`` runs with the clients that leave, answers a second fall below what they were before the burst.
The burst is over soon; the storm ends when clients stop coming again.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from alerts.causes import Cause
from drill.actions import ChangeClients
from drill.clients import ClientConfig, Patience
from drill.scenarios.chat import chat_fleet, chat_load, chat_rate
from drill.scenarios.fleets import request_seconds, rising
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting
from drill.workload.lengths import Fixed
from drill.workload.synthetic import open_loop

ONSET, END = 240.0, 480.0
_BURST_SECONDS = 90.0
_TIMES = 2.0
"""What comes in the burst over what keeps the pools full."""
_PATIENCE = 1.1
"""The clients' timeout over the time of the longest answer on an engine whose pool is full."""
_RETRIES = 20


def _impatient(scene: Scene) -> ClientConfig:
    before = list(scene.load.between(0.0, ONSET))
    prompt = Fixed(round(median(one.prompt_tokens for one in before)))
    longest = Fixed(max(one.output_tokens for one in before))
    slowest = max(request_seconds(config, prompt, longest, 1.0) for config in scene.engines.values())
    return ClientConfig(
        timeout_seconds=_PATIENCE * slowest,
        patience=Patience.ANSWER,
        retries=_RETRIES,
        backoff_seconds=0.2,
        backoff_factor=1.0,
    )


def _trouble(scene: Scene, setting: Setting) -> Scene:
    ramp = setting.ramp_within(END - ONSET - _BURST_SECONDS)  # the burst is over before the storm is
    burst = (ONSET, ONSET + _BURST_SECONDS + ramp)
    more = rising(_TIMES * chat_rate(scene, 1.0), burst, setting)
    impatient = replace(scene, clients=_impatient(scene))
    return (
        impatient.with_load(open_loop(chat_load("burst"), more, setting.seed + 4))
        .with_plan((END, ChangeClients({"retries": 0})))
        .with_episode(Episode("retry-storm", Cause.RETRY_STORM, ONSET, END, scene.names))
    )


def _fleet(setting: Setting) -> Scene:
    return chat_fleet(setting)


RETRY_STORM = Scenario(
    "retry-storm",
    Cause.RETRY_STORM,
    "After a burst clients leave at their timeout and ask again at once, and few are answered.",
    _fleet,
    _trouble,
    alerts=("RetryStorm", "SloTokenPaceBurnFast"),
)
