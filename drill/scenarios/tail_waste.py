"""Blocks of many hundred tokens, as hybrid models have them, and many short requests: the pool is full of empty slots.

Each sequence takes a block at least and fills a fifth of it. ``kv_usage_ratio`` is at 1 and requests wait with most of
the memory unused; ``tail_fragmentation_used_ratio`` tells it, and true tail waste lies within ``min`` and ``max``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from alerts.causes import Cause
from drill.scenarios.chat import PATIENT, chat_fleet
from drill.scenarios.fleets import requests_per_second, rising
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import EngineConfig, Generation
from drill.workload.lengths import Uniform
from drill.workload.rates import Rate
from drill.workload.synthetic import Load, open_loop

ONSET, END = 120.0, 560.0
_BLOCK_TOKENS = 1056
"""As vLLM aligns the attention layers' blocks of a hybrid model with its state-space layers'."""
_PROMPT_TOKENS, _ANSWER_TOKENS = 100, 200
_LOAD = Load(
    Uniform(_PROMPT_TOKENS // 2, 3 * _PROMPT_TOKENS // 2),
    Uniform(_ANSWER_TOKENS // 2, 3 * _ANSWER_TOKENS // 2),
    tenant="short",
    clients=20,
)
_BEFORE, _MORE = 0.35, 1.0
"""Sequences that are there at a time, over blocks of that size."""


def _rate(configs: Iterable[EngineConfig], sequences_ratio: float) -> float:
    """Requests a second that keep so many sequences there for each large block of the pools."""
    held = _PROMPT_TOKENS + _ANSWER_TOKENS / 2
    usage_ratio = sequences_ratio * held / _BLOCK_TOKENS
    return sum(requests_per_second(each, _LOAD.prompt, _LOAD.output, usage_ratio) for each in configs)


def _large_blocks(config: EngineConfig) -> EngineConfig:
    if config.generation is Generation.V0:
        raise SettingError("tail-waste: V0's blocks are of 32 tokens at most: take generation v1")
    size = max(config.block_tokens, _BLOCK_TOKENS)
    blocks = config.total_blocks * config.block_tokens // size
    seats = max(config.max_sequences, 2 * blocks)
    return replace(config, block_tokens=size, gpu_blocks=blocks, max_sequences=seats)


def _fleet(setting: Setting) -> Scene:
    scene = chat_fleet(setting, seconds=setting.choose(720, 1_200), clients=PATIENT)
    rate = Rate.constant(_rate(scene.engines.values(), _BEFORE), float(scene.seconds))
    return scene.loaded(open_loop(_LOAD, rate, setting.seed))


def _trouble(scene: Scene, setting: Setting) -> Scene:
    large = replace(scene, engines={name: _large_blocks(each) for name, each in scene.engines.items()})
    rate = rising(_rate(large.engines.values(), _MORE), (ONSET, END), setting)
    return large.with_load(open_loop(_LOAD, rate, setting.seed + 5)).with_episode(
        Episode("tail-waste", Cause.TAIL_WASTE, ONSET, END, scene.names)
    )


TAIL_WASTE = Scenario(
    "tail-waste",
    Cause.TAIL_WASTE,
    "Short requests stand in blocks of a thousand tokens: the pool is full, and four of five slots are empty.",
    _fleet,
    _trouble,
    alerts=("TailWaste",),
)
