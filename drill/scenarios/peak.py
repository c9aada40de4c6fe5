"""2026-10-15: twice the sessions of the incident on the fleet as it was set up after it. Nothing goes wrong.

The engines compute prompts in chunks of 512 tokens beside up to 256 decodes, keep prefixes, which spares some 40 % of
prompt tokens, and don't swap; the gateway tells them of clients that leave, and its admission control turns away at
once whom no pool will hold. Sessions rise from 1,200 to 2,400 within a minute. What a person sees: ``sequences`` and
``kv_usage_ratio`` rise, gaps between tokens grow with the batches and stay far below 200 ms (``tpot_p99_seconds``),
nobody is swapped (``swapped_sequences`` 0), hardly anybody preempted, ``thrashing`` 0. A page here is a false one.
"""

from __future__ import annotations

from datetime import UTC, datetime

from drill.gateway_config import GatewayConfig
from drill.scenarios import incident
from drill.scenarios.fleets import engine_config, names
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from drill.serving.config import EngineConfig, Generation
from drill.workload.arrivals import Stream

EPOCH = datetime(2026, 10, 15, 14, tzinfo=UTC).timestamp()
CHAT_POOL_RATIO, READING_POOL_RATIO = 0.118, 0.222
"""Of the engines' pools, by prompts, of half of the sessions: 79 and 21 on an engine of the incident's."""
MOST_PREFILL_RATIO = 0.4
_RISE_SECONDS = 60.0


def _half(engines: list[EngineConfig], start: float, within: float, seed: int) -> Stream:
    chat = sum(incident.chat_sessions(each, CHAT_POOL_RATIO, MOST_PREFILL_RATIO) for each in engines)
    reading = sum(incident.sessions_of(each, incident.DOCUMENTS, READING_POOL_RATIO) for each in engines)
    return incident.sessions(incident.CHATTING, chat, (start, within), seed).beside(
        incident.sessions(incident.READING, reading, (start, within), seed + 1)
    )


def _fleet(setting: Setting) -> Scene:
    generation = setting.generation or Generation.V0
    config = engine_config(
        setting,
        "llama-70b",
        "h100",
        generation,
        tensor_parallel=incident.TENSOR_PARALLEL,
        **incident.hardening(generation),
    )
    engines = dict.fromkeys(names(setting, 1, 12), config)
    return Scene(
        engines,
        _half(list(engines.values()), 0.0, incident.START_SECONDS, setting.seed * 10),
        setting.choose(480, 2400),
        gateway=GatewayConfig(rate_per_second=400.0, **incident.GATEWAY),
        clients=incident.CLIENTS,
        shows_gpus=1,
        epoch=EPOCH,
    )


def _trouble(scene: Scene, setting: Setting) -> Scene:
    start = setting.choose(150.0, 600.0)
    within = max(_RISE_SECONDS, setting.ramp_within(scene.seconds - start))
    return scene.with_load(_half(list(scene.engines.values()), start, within, setting.seed * 10 + 2))


PEAK = Scenario(
    "peak",
    None,
    "Twice the incident's sessions on the fleet that was hardened after it: it stays quiet.",
    _fleet,
    _trouble,
)
