"""A prompt that is larger than the KV pool stands at the head of an engine's queue, and nobody behind it is let in.

The engine was started with fewer blocks than its own limit of prompt lengths needs (``--num-gpu-blocks-override``),
which nothing complains of until such a prompt comes: it is taken, never fits, and is never given up (vLLM issues 39734,
35541). Those that run go on to their ends; then nothing runs, usage is near 0, and requests wait:
``engine_deadlocked``. Its front end goes on answering, and the gateway goes on sending. A restart with a limit that the
pool holds ends it. V0 refuses such a prompt.
"""

from __future__ import annotations

from dataclasses import replace

from alerts.causes import Cause
from drill.actions import Restart
from drill.scenarios.chat import END, ONSET, chat_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import EngineConfig, Generation
from drill.workload.lengths import Fixed
from drill.workload.rates import Rate
from drill.workload.synthetic import Load, open_loop

_TIMEOUT_SECONDS = 600.0
"""What OpenAI's client waits unless told otherwise."""
_PROMPT_RATIO = 1.1
"""Of the pool."""
_LIMIT_RATIO = 1.25
_ANSWER_TOKENS = 20
_PROMPTS_A_ENGINE = 4
_APART_SECONDS = 1.0
_START_SECONDS = 60.0


def _pool_tokens(config: EngineConfig) -> int:
    return config.usable_blocks * config.block_tokens


def _fleet(setting: Setting) -> Scene:
    return replace(chat_fleet(setting), start_seconds=_START_SECONDS)


def _trouble(scene: Scene, setting: Setting) -> Scene:
    if any(config.generation is Generation.V0 for config in scene.engines.values()):
        raise SettingError("engine-deadlocked: V0 gives up a prompt that can never fit: take generation v1")
    name = scene.one_engine(stops=True)
    pool = _pool_tokens(scene.engines[name])
    prompt = round(_PROMPT_RATIO * pool)
    engines = {
        each: replace(config, max_model_tokens=round(_LIMIT_RATIO * pool))
        if each == name
        else replace(config, max_model_tokens=min(config.max_model_tokens, _pool_tokens(config)))
        for each, config in scene.engines.items()
    }
    # a job sends its documents once each; engines that are set up as they should be refuse them
    count = _PROMPTS_A_ENGINE * len(engines)
    load = Load(Fixed(prompt), Fixed(_ANSWER_TOKENS), tenant="job", clients=1)
    rate = Rate.constant(1 / _APART_SECONDS, ONSET + count * _APART_SECONDS, ONSET)
    patient = replace(scene.clients, timeout_seconds=_TIMEOUT_SECONDS, retries=0)
    return (
        replace(scene, engines=engines, clients=patient)
        .with_load(open_loop(load, rate, setting.seed + 7))
        .with_plan((END, Restart(name, {"max_model_tokens": pool}, drain_seconds=0.0)))
        .with_episode(Episode("engine-deadlocked", Cause.ENGINE_DEADLOCKED, ONSET, END, (name,)))
    )


ENGINE_DEADLOCKED = Scenario(
    "engine-deadlocked",
    Cause.ENGINE_DEADLOCKED,
    "A prompt that is larger than the pool blocks an engine's queue for ever: requests wait and none runs.",
    _fleet,
    _trouble,
    alerts=("EngineDeadlocked",),
)
