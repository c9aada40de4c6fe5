"""The engine that runs here: vLLM on a CPU with a tiny model, as ``make real`` starts it, and what its oracle tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drill.serving.config import EngineConfig
from drill.serving.models import MODELS
from drill.validation.comparison import Reading
from exporter.hardware import GPUS

CONFIG = EngineConfig(
    model=MODELS["tiny"],
    gpu=GPUS["h100"],  # whose figures don't matter: times are measured
    block_tokens=32,
    gpu_blocks=256,  # two dozen requests of some 1,000 tokens each must preempt one another
    max_batched_tokens=512,
    max_sequences=32,
    max_model_tokens=2048,
)

READ_SECONDS = 0.25


def readings(
    steps: Sequence[Mapping[str, Any]], start: float, begin: float, end: float
) -> tuple[Reading, ...]:
    """The scheduler every quarter of a second from ``begin`` to ``end``, as its last step left it.

    ``steps`` are the oracle's lines, by time (``t``, an epoch); ``start``: the epoch that seconds count from. Instants
    before the first step are left out.
    """
    times = np.array([float(step["t"]) - start for step in steps])
    instants = np.arange(begin + READ_SECONDS, end, READ_SECONDS)
    places = np.searchsorted(times, instants, side="right") - 1
    return tuple(
        Reading(
            at,
            float(steps[place]["running"]),
            float(steps[place]["waiting"]),
            float(steps[place]["blocks_used"]) / CONFIG.usable_blocks,
        )
        for at, place in zip(instants.tolist(), places.tolist(), strict=True)
        if place >= 0
    )
