"""Sequences go to a tier in host memory, come back as soon as their blocks fit, and are thrown out at once again.

Long documents with long answers, on engines of a V1 before 0.19 with a host tier instead of a prefix cache on the GPU
(``--no-enable-prefix-caching``), and a PCIe link that several GPUs share. What a preempted sequence had is loaded again
instead of computed: hardly anything is recomputed, but bytes flow into the GPUs as fast as sequences are thrown out,
sequences hold blocks while their own are on their way and nobody works on them, which takes a third of the tokens a
second from as many sequences, and gaps between tokens have a tail. ``swap_bytes_per_second`` in both directions,
``tokens_per_preemption`` and ``thrashing`` show it; prompts that are stored once are what keeps
``transfer_reciprocity_ratio`` near 0 before. With a prefix cache who was thrown out finds its blocks on the GPU as it
left them, nearly always, and hardly anything is lost. V0 has no such tier: its swapping is a scenario of its own.
"""

from __future__ import annotations

from dataclasses import replace

from alerts.causes import Cause
from drill.clients import ClientConfig, Patience
from drill.scenarios.chat import ANSWERS, PROMPTS, USAGE_RATIO, chat_fleet
from drill.scenarios.fleets import requests_per_second
from drill.scenarios.long_answers import LongAnswers, with_long_answers, without_reservation
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting
from drill.serving.config import EngineConfig
from drill.workload.rates import Rate
from drill.workload.synthetic import Load, open_loop

ONSET, END = 180.0, 330.0
_ANSWERS = LongAnswers(12_000, 0.7, 1.3)
_TIER_POOLS = 2.0
"""The tier's size over the pool's."""
_LINK_SHARERS = 8
_WHY_NOT_V0 = "offload-thrash: V0 has no tier to offload to: take generation v1, or the scenario incident"


def _offloading(config: EngineConfig) -> EngineConfig:
    tier = config.offload_bytes or _TIER_POOLS * config.usable_blocks * config.block_bytes
    sharers = max(config.link_sharers, _LINK_SHARERS)
    return replace(config, offload_bytes=tier, link_sharers=sharers, prefix_caching=False)


def _fleet(setting: Setting) -> Scene:
    """Prompts share no beginning: before the trouble nothing is in the tier that anybody would load."""
    scene = chat_fleet(
        setting,
        seconds=setting.choose(600, 1_800),
        clients=ClientConfig(timeout_seconds=60, patience=Patience.FIRST_TOKEN, retries=0),
    )
    rate = sum(requests_per_second(each, PROMPTS, ANSWERS, USAGE_RATIO) for each in scene.engines.values())
    load = Load(PROMPTS, ANSWERS, tenant="chat", clients=20)
    return scene.loaded(open_loop(load, Rate.constant(rate, float(scene.seconds)), setting.seed))


def _trouble(scene: Scene, setting: Setting) -> Scene:
    eager = without_reservation(scene, _WHY_NOT_V0, _offloading)
    return with_long_answers(eager, setting, _ANSWERS, (ONSET, END)).with_episode(
        Episode("offload-thrash", Cause.OFFLOAD_THRASH, ONSET, END, scene.names)
    )


OFFLOAD_THRASH = Scenario(
    "offload-thrash",
    Cause.OFFLOAD_THRASH,
    "Sequences come back from the tier in host memory to be thrown out again.",
    _fleet,
    _trouble,
    alerts=("KvOffloadThrash",),
)
