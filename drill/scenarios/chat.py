"""The fleet that most scenarios break: a chat service of a 70B model on pairs of H200, its KV pools half full."""

from __future__ import annotations

from drill.clients import ClientConfig, Patience
from drill.gateway_config import GatewayConfig, Routing
from drill.scenarios.fleets import engine_config, names, requests_per_second
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from drill.workload.lengths import LogNormal
from drill.workload.rates import Rate
from drill.workload.synthetic import Load, open_loop

PROMPTS = LogNormal(1_500, 0.6, least=200, most=10_000)
ANSWERS = LogNormal(600, 0.5, least=60, most=2_500)
SYSTEM_TOKENS = 800
"""Of each prompt, shared by all."""
USAGE_RATIO = 0.45
QUESTIONS = LogNormal(400, 0.6, least=50, most=3_000)
HANDBOOK_TOKENS, HANDBOOKS = 6_000, 2
SHARED_USAGE_RATIO = 0.12
"""Of questions alone: unshared they need ten times as much."""
ONSET, END = 180.0, 420.0
"""When most troubles begin, and are over."""
PATIENT = ClientConfig(timeout_seconds=120, patience=Patience.FIRST_TOKEN, retries=0)
"""Clients that wait in a queue for minutes, and take a refusal for an answer."""
BASE = "llama-70b", "h200"
TENSOR_PARALLEL = 2
BATCHED_TOKENS = 2048
"""A chunk of a prompt takes so long that decodes beside it keep to 5 tokens a second."""
SMALL_POOL_BLOCKS = 8_192
"""Of an engine in a small run, 131,072 tokens: less than half of what fits, so that fewer sequences fill it."""


def chat_load(tenant: str = "chat") -> Load:
    """What its requests look like."""
    return Load(PROMPTS, ANSWERS, system_tokens=SYSTEM_TOKENS, tenant=tenant, clients=20)


def chat_rate(scene: Scene, usage_ratio: float) -> float:
    """Requests a second that keep the pools of all engines of a scene that full."""
    return sum(
        requests_per_second(each, PROMPTS, ANSWERS, usage_ratio, SYSTEM_TOKENS)
        for each in scene.engines.values()
    )


def chat_fleet(
    setting: Setting,
    *,
    seconds: int = 660,
    gateway: GatewayConfig | None = None,
    clients: ClientConfig | None = None,
    **engine: object,
) -> Scene:
    """Two engines (small) or six (full) under an even load for ``seconds``; ``engine``: fields of EngineConfig.

    It lasts longer where the setting wants it to. Raises SettingError.
    """
    seconds = max(seconds, setting.least_seconds)
    settings: dict[str, object] = {
        "gpu_blocks": setting.choose(SMALL_POOL_BLOCKS, None),
        "max_batched_tokens": BATCHED_TOKENS,
    }
    config = engine_config(setting, *BASE, tensor_parallel=TENSOR_PARALLEL, **settings | engine)  # type: ignore[arg-type]
    scene = Scene(
        dict.fromkeys(names(setting, 2, 6), config),
        load=open_loop(chat_load(), Rate.constant(0.0, 1.0), setting.seed),
        seconds=seconds,
        gateway=gateway or GatewayConfig(Routing.LEAST_IN_FLIGHT),
        clients=clients or ClientConfig(patience=Patience.SILENCE),
    )
    rate = Rate.constant(chat_rate(scene, USAGE_RATIO), float(seconds))
    return scene.loaded(open_loop(chat_load(), rate, setting.seed))


def shared_fleet(setting: Setting) -> Scene:
    """The same fleet, whose prompts share a long beginning: a handbook that each question is about.

    Raises SettingError.
    """
    scene = chat_fleet(setting)
    load = Load(
        QUESTIONS, ANSWERS, system_tokens=HANDBOOK_TOKENS, systems=HANDBOOKS, tenant="handbook", clients=20
    )
    rate = sum(
        requests_per_second(each, QUESTIONS, ANSWERS, SHARED_USAGE_RATIO, HANDBOOK_TOKENS)
        for each in scene.engines.values()
    )
    return scene.loaded(open_loop(load, Rate.constant(rate, float(scene.seconds)), setting.seed))
