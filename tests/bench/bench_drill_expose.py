"""What it costs to show eight of the drill's engines each second: pages, and samples without them; CPU of one core."""

from __future__ import annotations

import time
from collections.abc import Callable

from drill.serving.config import EngineConfig
from drill.serving.step_result import Gauges, StepResult
from tests.bench import report
from tests.bench.report import Figure
from tests.drill.exposing import EPOCH, OFFLOAD, V0_SWAP, Play, play

ENGINES = 8
_TIMES = 100
BAR_SECONDS = 0.02
"""2 % of a core."""
BAR_PERCENT = 20.0


def main() -> None:
    """Pages and samples of engines after a minute of overload; what seeing it takes beside the engine itself."""
    for name, config in (("V1 with offload", OFFLOAD), ("V0", V0_SWAP)):
        played = play(config)
        began = time.process_time()
        list(played.seconds(60))
        spent = time.process_time() - began
        report.record(Figure(f"drill, an engine seen by its server, {name}", 60 / spent, "times real time"))
        report.record(
            Figure(
                f"drill, of that the server, {name}", 100 * _seeing_seconds(config) / spent, "%", BAR_PERCENT
            )
        )
        for what, shown in _ways(played).items():
            shown()
            began = time.process_time()
            for _ in range(_TIMES):
                shown()
            spent = (time.process_time() - began) / _TIMES * ENGINES
            report.record(
                Figure(f"drill, {what} of {ENGINES} engines, {name}", spent * 1e3, "ms", BAR_SECONDS * 1e3)
            )


def _seeing_seconds(config: EngineConfig) -> float:
    """CPU of the server alone, told of the same minute at once."""
    played = play(config)
    told: list[tuple[StepResult, Gauges]] = []
    (engine,) = played.engines
    while (result := engine.step(60.0)) is not None:
        told.append((result, engine.gauges()))
    began = time.process_time()
    for result, gauges in told:
        played.server.see(result, gauges)
    return time.process_time() - began


def _ways(played: Play) -> dict[str, Callable[[], object]]:
    return {
        "a page each": played.server.page,
        "a sample each": lambda: played.server.sample("worker", EPOCH),
    }
