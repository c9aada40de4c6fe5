"""How long a fleet of 24 engines takes for 70 minutes, and how much memory: a part of it is run and scaled up.

The incident's kind of load: sessions with documents of 8k to 64k tokens on V0 that swaps, 450 of them and then 1,200,
clients that leave after 30 s and come again, a gateway that tells the engines of none of it.
"""

from __future__ import annotations

import resource
import time

from drill.clients import ClientConfig
from drill.fleet import Fleet
from drill.gateway_config import GatewayConfig
from drill.serving.config import EngineConfig, Generation
from drill.serving.models import MODELS
from drill.serving.request import PreemptionMode
from drill.workload.lengths import INCIDENT_PROMPTS, LogNormal
from drill.workload.rates import Rate
from drill.workload.synthetic import Load, closed_loop
from exporter.hardware import GPUS
from tests.bench import report
from tests.bench.report import Figure

_ENGINES, _SECONDS, _WHOLE_SECONDS = 24, 240, 70 * 60
_BAR_SECONDS, _BAR_BYTES = 600.0, 4e9
_V1 = EngineConfig(MODELS["llama-70b"], GPUS["h100"], tensor_parallel=8, max_batched_tokens=768)
_V0 = EngineConfig(
    MODELS["llama-70b"],
    GPUS["h100"],
    Generation.V0,
    tensor_parallel=8,
    chunked_prefill=False,
    prefix_caching=False,
    max_batched_tokens=131072,
    preemption=PreemptionMode.SWAP,
    swap_bytes_gpu=40e9,
)


def main() -> None:
    """Both generations; half of the time with 450 sessions, half with 1,200."""
    load = Load(INCIDENT_PROMPTS, LogNormal(500, 0.5))
    half = _SECONDS / 2
    sessions = closed_loop(load, Rate.constant(7.5, 60.0), 1, think_seconds=30.0).beside(
        closed_loop(load, Rate.constant(25.0, half + 30.0, half), 2, think_seconds=30.0)
    )
    for name, config in (("V0", _V0), ("V1", _V1)):
        fleet = Fleet(
            {f"engine-{index}": config for index in range(_ENGINES)},
            sessions,
            gateway=GatewayConfig(rate_per_second=1500.0, passes_disconnects=False),
            clients=ClientConfig(),
            seed=1,
        )
        began = time.process_time()
        for second in fleet.run(_SECONDS):
            last = second
        spent = time.process_time() - began
        scaled = spent * _WHOLE_SECONDS / _SECONDS
        report.record(Figure(f"drill fleet of 24, {name}, 70 minutes, scaled", scaled, "s CPU", _BAR_SECONDS))
        totals = last.clients
        report.line(
            f"    {_SECONDS} s in {spent:.1f} s: {totals.attempts} attempts, {totals.answered} answered"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    report.record(Figure("drill fleet of 24, memory of the process", peak / 1e9, "GB", _BAR_BYTES / 1e9))


if __name__ == "__main__":
    report.standalone(main)
