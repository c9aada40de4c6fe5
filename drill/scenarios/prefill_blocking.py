"""Long prompts that are computed whole stop every other stream of their engine for seconds each.

The engines take batches as large as a whole prompt (V0: without chunked prefill). While a prompt of tens of thousands
of tokens is computed nobody gets a token; usage is far from full, nothing is preempted: it is the order of work, not
its amount. Gaps between tokens have a tail of seconds with a median that is as before: ``head_of_line_ratio`` says for
which share of the time decodes stood still, ``tpot_p99_seconds`` for how long at a time.
"""

from __future__ import annotations

from dataclasses import replace

from alerts.causes import Cause
from drill.scenarios.chat import END, ONSET, chat_fleet, chat_load, chat_rate
from drill.scenarios.fleets import prefill_seconds, rising
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting
from drill.serving.config import EngineConfig, Generation
from drill.workload.lengths import Fixed, Uniform
from drill.workload.rates import Rate
from drill.workload.synthetic import Load, open_loop

_WHOLE_PROMPT_TOKENS = 131_072
_USAGE_RATIO = 0.2
"""Of the pools, which are whole at the small size too: a long prompt is to be no large part of one."""
_POOL_SHARE = 0.2
"""Of an engine's pool, in one of the long prompts at most."""
_MOST_PROMPT_TOKENS = 48_000
_ANSWER_TOKENS = 20
_BLOCKED_RATIO = 0.4
"""Of an engine's time, in which it computes them."""
_VARIATION = 0.5
"""Of the gaps between them: a job that sends one after the other."""


def _fleet(setting: Setting) -> Scene:
    scene = chat_fleet(setting, gpu_blocks=None)
    rate = Rate.constant(chat_rate(scene, _USAGE_RATIO), float(scene.seconds))
    return scene.loaded(open_loop(chat_load(), rate, setting.seed))


def _unchunked(config: EngineConfig) -> EngineConfig:
    whole = max(_WHOLE_PROMPT_TOKENS, config.max_model_tokens)
    return replace(
        config,
        max_batched_tokens=whole,
        chunked_prefill=config.generation is Generation.V1,
        long_prefill_tokens=0,
    )


def _trouble(scene: Scene, setting: Setting) -> Scene:
    unchunked = replace(scene, engines={name: _unchunked(each) for name, each in scene.engines.items()})
    pool = min(each.usable_blocks * each.block_tokens for each in scene.engines.values())
    longest = int(min(_POOL_SHARE * pool, _MOST_PROMPT_TOKENS))
    load = Load(Uniform(longest // 2, longest), Fixed(_ANSWER_TOKENS), tenant="documents", clients=3)
    each = (prefill_seconds(config, 3 * longest // 4) for config in unchunked.engines.values())
    rate = rising(sum(_BLOCKED_RATIO / seconds for seconds in each), (ONSET, END), setting)
    return unchunked.with_load(open_loop(load, rate, setting.seed + 2, _VARIATION)).with_episode(
        Episode("prefill-blocking", Cause.PREFILL_BLOCKING, ONSET, END, scene.names)
    )


PREFILL_BLOCKING = Scenario(
    "prefill-blocking",
    Cause.PREFILL_BLOCKING,
    "Long prompts, computed whole, stop all other streams for seconds each.",
    _fleet,
    _trouble,
    alerts=("HeadOfLineBlocking",),
)
