"""How much faster than time itself the drill's engine runs, in CPU time of one core.

A 70B model on 8 H100 under the incident's kind of load, an engine's share of the fleet's 450 to 1,200 sessions:
prompts of 8k to 64k tokens, some 20 to 50 in the engine, each generation of the engine under its own trouble.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace

from drill.serving.config import EngineConfig, Generation
from drill.serving.content import Segment
from drill.serving.engine import Engine
from drill.serving.models import MODELS
from drill.serving.request import PreemptionMode, Request
from exporter.hardware import GPUS
from tests.bench import report
from tests.bench.report import Figure

BAR_TIMES = 500.0
_SECONDS = 1200.0
_V1 = EngineConfig(MODELS["llama-70b"], GPUS["h100"], tensor_parallel=8, max_batched_tokens=768)
_V0 = replace(
    _V1,
    generation=Generation.V0,
    chunked_prefill=False,
    prefix_caching=False,
    max_batched_tokens=131072,
    preemption=PreemptionMode.SWAP,
    swap_bytes_gpu=40e9,
)


@dataclass(frozen=True, slots=True)
class Load:
    """Poisson arrivals a second, and lengths; ``shared``: the prompts begin with one of so many documents.

    ``barred``: it is the incident's kind of load, for which a speed was promised.
    """

    rate: float
    prompt: tuple[int, int]
    output: tuple[int, int]
    patience: float | None = None
    shared: int = 0
    barred: bool = True


_LOADS = {
    "V0, calm": (_V0, Load(0.25, (8_000, 64_000), (200, 900))),
    "V0, swapping": (_V0, Load(0.35, (8_000, 64_000), (2_000, 6_000))),
    "V1, prefixes": (_V1, Load(0.45, (8_000, 64_000), (200, 900), shared=4)),
    "V1, overload": (_V1, Load(0.8, (8_000, 64_000), (200, 900), patience=30.0)),
    "V1, 250 short ones": (
        replace(_V1, max_batched_tokens=2048),
        Load(4.0, (500, 4_000), (500, 2_500), barred=False),
    ),
}


def main() -> None:
    """Each load for 20 minutes of its own time."""
    for name, (config, load) in _LOADS.items():
        engine = Engine(config)
        for request in _requests(load):
            engine.submit(request)
        began = time.process_time()
        most = 0
        second = 0.0
        while second < _SECONDS:  # as a drill does: a sample each second
            second += 1.0
            while engine.step(second) is not None:
                pass
            gauges = engine.gauges()
            most = max(most, gauges.running + gauges.swapped)
        spent = time.process_time() - began
        totals = engine.totals
        bar = BAR_TIMES if load.barred else None
        report.record(Figure(f"drill engine, {name}", _SECONDS / spent, "times real time", bar, "higher"))
        report.line(
            f"    {totals.iterations} iterations, at most {most} sequences, {totals.preemptions} preempted, "
            f"{totals.swap_out_blocks + totals.swap_in_blocks} blocks swapped"
        )


def _requests(load: Load) -> list[Request]:
    chance = random.Random(1)  # noqa: S311 -- repeatable, guards nothing
    requests: list[Request] = []
    at = 0.0
    while (at := at + chance.expovariate(load.rate)) < _SECONDS:
        prompt = chance.randint(*load.prompt)
        content: tuple[Segment, ...] = ()
        if load.shared:
            begin = load.prompt[0]
            content = (Segment(chance.randrange(load.shared), begin),)
            if prompt > begin:
                content += (Segment(1000 + len(requests), prompt - begin),)
        requests.append(
            Request(
                len(requests),
                at,
                prompt,
                chance.randint(*load.output),
                content=content,
                abort_seconds=None if load.patience is None else at + load.patience,
            )
        )
    return requests
