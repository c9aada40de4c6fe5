"""Small engines under more load than they can take, and what their server shows of it each second."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from drill.expose.observed import Served
from drill.expose.release import NEWEST_V0, NEWEST_V1, Release
from drill.expose.server import Server
from drill.serving.config import EngineConfig, Generation
from drill.serving.content import Segment
from drill.serving.engine import Engine
from drill.serving.models import MODELS
from drill.serving.request import PreemptionMode, Request
from drill.serving.step_result import StepResult
from drill.serving.step_time import MeasuredTimes
from exporter.hardware import GPUS
from exporter.sample import EngineSample, RankSample

EPOCH = 1_790_000_000.0
SECONDS = 120
TIMES = MeasuredTimes(0.0036, 1e-5, 1.2e-4, swap_block_seconds=2e-4)
"""As measured on the recorded engines (drill.validation.recorded_run)."""


def small(generation: Generation, **changes: object) -> EngineConfig:
    """An engine as those that were recorded: 8192 tokens of KV cache, requests of at most 2048."""
    chosen: dict[str, object] = {
        "model": MODELS["tiny"],
        "gpu": GPUS["h100"],
        "generation": generation,
        "block_tokens": 32,
        "gpu_blocks": 256,
        "max_batched_tokens": 512,
        "max_sequences": 32,
        "max_model_tokens": 2048,
    }
    return EngineConfig(**(chosen | changes))  # type: ignore[arg-type]


V1 = small(Generation.V1)
OFFLOAD = small(Generation.V1, offload_bytes=8 * 2.0**20)
V0_SWAP = small(
    Generation.V0,
    block_tokens=16,
    gpu_blocks=512,
    watermark_ratio=0.0,
    prefix_caching=False,
    preemption=PreemptionMode.SWAP,
    swap_bytes_gpu=2.0**30,
)
V0_RECOMPUTE = small(Generation.V0, block_tokens=16, gpu_blocks=512, watermark_ratio=0.0)


def load(rate: float, seed: int = 1, patience: float | None = 6.0, until: float = 60.0) -> list[Request]:
    """Poisson arrivals; half of the prompts begin with one of four documents, a fifth of the clients leave early."""
    chance = random.Random(seed)  # noqa: S311 -- repeatable, guards nothing
    requests: list[Request] = []
    at = 0.0
    while (at := at + chance.expovariate(rate)) < until:
        number = len(requests)
        prompt = chance.randint(40, 900)
        content = [Segment(1000 + number, prompt)]
        if number % 2 and prompt > 200:
            content = [Segment(number % 8, 200), Segment(1000 + number, prompt - 200)]
        leaves = at + patience if patience is not None and number % 5 == 0 else None
        requests.append(
            Request(number, at, prompt, chance.randint(1, 700), tuple(content), abort_seconds=leaves)
        )
    return requests


@dataclass
class Play:
    """Engines behind one server. ``results`` are those of the last second, rank by rank."""

    server: Server
    engines: list[Engine]
    second: int = 0

    def __post_init__(self) -> None:
        self.results: list[list[StepResult]] = [[] for _ in self.engines]

    def seconds(self, most: int = SECONDS) -> Iterator[int]:
        """Let time go on second by second."""
        while self.second < most:
            self.second += 1
            for rank, engine in enumerate(self.engines):
                self.results[rank] = []
                while (result := engine.step(self.second)) is not None:
                    self.server.see(result, engine.gauges(), rank)
                    self.results[rank].append(result)
            yield self.second


def play(
    config: EngineConfig,
    release: Release | None = None,
    *,
    ranks: int = 1,
    several_servers: bool = False,
    rate: float = 8.0,
) -> Play:
    """Engines of this kind, ``rate`` requests a second for each, from the start on."""
    engines = []
    for rank in range(ranks):
        engine = Engine(config, TIMES)
        for request in load(rate, seed=rank + 1):
            engine.submit(request)
        engines.append(engine)
    newest = NEWEST_V1 if config.generation is Generation.V1 else NEWEST_V0
    served = Served(config, release or newest, "tiny", EPOCH, 0.0)
    server = Server(served, [engine.gauges() for engine in engines], several_servers=several_servers)
    return Play(server, engines)


def differing(read: EngineSample, handed: EngineSample) -> dict[str, tuple[object, object]]:
    """Fields that aren't equal, of the engine and of its ranks."""
    pairs: list[tuple[str, object, object]] = [("engine", replace(read, ranks=()), replace(handed, ranks=()))]
    pairs.append(("ranks", len(read.ranks), len(handed.ranks)))
    for one, other in zip(read.ranks, handed.ranks, strict=False):
        pairs += [
            (f"{one.rank}.{field.name}", getattr(one, field.name), getattr(other, field.name))
            for field in fields(RankSample)
        ]
    return {name: (left, right) for name, left, right in pairs if left != right}
