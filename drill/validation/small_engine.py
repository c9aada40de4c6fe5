"""The engine that runs here: vLLM on a CPU with a tiny model, as ``make real`` starts it."""

from __future__ import annotations

from drill.serving.config import EngineConfig
from drill.serving.models import MODELS
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
