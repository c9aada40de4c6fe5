"""The fleet that most scenarios break: a chat service of a 70B model on pairs of H200, its KV pools half full."""

from __future__ import annotations

from drill.clients import ClientConfig
from drill.gateway_config import GatewayConfig, Routing
from drill.scenarios.fleets import engine_config, names, requests_per_second
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from drill.workload.lengths import LogNormal
from drill.workload.rates import Rate
from drill.workload.synthetic import Load, open_loop

PROMPTS = LogNormal(2_000, 0.6, least=300, most=12_000)
ANSWERS = LogNormal(500, 0.5, least=50, most=2_000)
SYSTEM_TOKENS = 800
"""Of each prompt, shared by all."""
USAGE_RATIO = 0.45
BASE = "llama-70b", "h200"
TENSOR_PARALLEL = 2
BATCHED_TOKENS = 1024
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
    seconds: int = 720,
    gateway: GatewayConfig | None = None,
    clients: ClientConfig | None = None,
    **engine: object,
) -> Scene:
    """Two engines (small) or six (full) under an even load for ``seconds``; ``engine``: fields of EngineConfig."""
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
        clients=clients or ClientConfig(),
    )
    rate = Rate.constant(chat_rate(scene, USAGE_RATIO), float(seconds))
    return scene.loaded(open_loop(chat_load(), rate, setting.seed))
