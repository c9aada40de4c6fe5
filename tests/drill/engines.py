"""Small engines whose iterations take a second each, and what they did, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass

from drill.serving.config import EngineConfig, Generation
from drill.serving.engine import Engine
from drill.serving.models import MODELS
from drill.serving.request import Outcome, PreemptionMode, Record, Request
from drill.serving.step_result import StepResult
from drill.serving.step_time import MeasuredTimes
from exporter.hardware import GPUS

SECOND = MeasuredTimes(fixed_seconds=1.0, prefill_token_seconds=0.0, decode_seconds=0.0)
"""Each iteration takes a second, whatever it does."""


def config(blocks: int, block_tokens: int = 4, **changes: object) -> EngineConfig:
    """An engine with so many usable blocks."""
    generation = changes.setdefault("generation", Generation.V1)
    chosen: dict[str, object] = {
        "model": MODELS["tiny"],
        "gpu": GPUS["h100"],
        "block_tokens": block_tokens,
        "gpu_blocks": blocks + (generation is Generation.V1),
        "max_batched_tokens": 64,
        "max_sequences": 16,
        "watermark_ratio": 0.0,
        "prefix_caching": False,
    }
    return EngineConfig(**(chosen | changes))  # type: ignore[arg-type]


def request(number: int, prompt: int, output: int, at: float = 0.0, **more: object) -> Request:
    """One request."""
    return Request(number, at, prompt, output, **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Moment:
    """The engine after an iteration: who stands where, by request id, and free blocks."""

    at: float
    running: tuple[int, ...]
    waiting: tuple[int, ...]
    swapped: tuple[int, ...]
    free: int
    preempted: tuple[int, ...]
    finished: tuple[int, ...]


def watch(engine: Engine, until: float = 1000.0) -> list[Moment]:
    """Run to the end, or to ``until``; a moment for each iteration."""
    moments = []
    while (result := engine.step(until)) is not None:
        moments.append(moment(engine, result))
    return moments


def moment(engine: Engine, result: StepResult) -> Moment:
    """The engine now, after that result."""
    queues = engine.scheduler
    return Moment(
        engine.now,
        tuple(one.request.request_id for one in queues.running),
        tuple(one.request.request_id for one in queues.waiting),
        tuple(one.request.request_id for one in queues.swapped),
        engine.memory.pool.free,
        tuple(record.request.request_id for record, _ in result.preempted),
        tuple(record.request.request_id for record in result.finished),
    )


def run(engine: Engine, *requests: Request) -> tuple[list[StepResult], dict[int, Record]]:
    """Submit them all and run to the end: all results, and how each request ended."""
    for each in requests:
        engine.submit(each)
    results = []
    while (result := engine.step()) is not None:
        results.append(result)
    return results, {record.request.request_id: record for result in results for record in result.finished}


__all__ = [
    "SECOND",
    "Moment",
    "Outcome",
    "PreemptionMode",
    "config",
    "moment",
    "request",
    "run",
    "watch",
]
