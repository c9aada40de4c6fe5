"""A tenant sends prompts beyond the quota of 64k tokens: one in twelve, and they hold most of what is held.

Prompts are computed in chunks, so that nobody stands still for them; but each of them holds as much of the pool as
dozens of others, the chunks that it takes make all tokens beside it slower, and first tokens are late.
``long_prompt_ratio`` tells their share of what has ended within five minutes. Nothing is broken: it is an agreement
that isn't kept.
"""

from __future__ import annotations

from alerts.causes import Cause
from drill.clients import ClientConfig, Patience
from drill.scenarios.chat import ONSET, chat_fleet, chat_load, chat_rate
from drill.scenarios.fleets import rising
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting, SettingError
from drill.workload.lengths import Fixed, Uniform
from drill.workload.rates import Rate
from drill.workload.synthetic import Load, open_loop

END = 840.0
_USAGE_RATIO = 0.1
_SHARE = 1 / 12
_PROMPTS = Uniform(68_000, 80_000)
_MOST_POOL_RATIO = 0.5
_ANSWER_TOKENS = 100
_VARIATION = 0.3


def _fleet(setting: Setting) -> Scene:
    clients = ClientConfig(timeout_seconds=120, patience=Patience.FIRST_TOKEN, retries=0)
    scene = chat_fleet(setting, seconds=960, clients=clients, gpu_blocks=None)
    rate = Rate.constant(chat_rate(scene, _USAGE_RATIO), float(scene.seconds))
    return scene.loaded(open_loop(chat_load(), rate, setting.seed))


def _trouble(scene: Scene, setting: Setting) -> Scene:
    pool = min(each.usable_blocks * each.block_tokens for each in scene.engines.values())
    if _PROMPTS.most > _MOST_POOL_RATIO * pool:
        raise SettingError(
            f"long-prompts: a prompt of {_PROMPTS.most} tokens is more than half of a pool of {pool}: take a smaller "
            "model or a larger GPU, or long-prompts first"
        )
    came = sum(1 for _ in scene.load.between(0.0, ONSET)) / ONSET
    load = Load(_PROMPTS, Fixed(_ANSWER_TOKENS), tenant="beyond-quota", clients=1)
    rate = rising(_SHARE * came, (ONSET, END), setting)
    return scene.with_load(open_loop(load, rate, setting.seed + 9, _VARIATION)).with_episode(
        Episode("long-prompts", Cause.LONG_PROMPTS, ONSET, END, scene.names)
    )


LONG_PROMPTS = Scenario(
    "long-prompts",
    Cause.LONG_PROMPTS,
    "One prompt in twelve is longer than the quota of 64k tokens.",
    _fleet,
    _trouble,
    alerts=("LongPromptsOverQuota",),
)
