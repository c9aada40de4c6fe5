"""Fleets that are well: engines that fit their GPUs, and the load that they carry with ease."""

from __future__ import annotations

import numpy as np

from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import EngineConfig, EngineConfigError, Generation
from drill.serving.models import UnknownModelError, model_by_name
from drill.serving.step_time import Batch
from drill.workload.lengths import Lengths
from exporter.hardware import UnknownGpuError, gpu_by_name

_DRAWS = 2000
_LEAST_POOL_TOKENS = 100_000
_MOST_PREFILL_RATIO = 0.9


def engine_config(
    setting: Setting,
    model: str = "llama-8b",
    gpu: str = "h100",
    generation: Generation = Generation.V1,
    tensor_parallel: int | None = None,
    **more: object,
) -> EngineConfig:
    """An engine as a scenario has it, or where the setting moves it to; ``more`` are fields of EngineConfig.

    ``tensor_parallel`` holds where neither model nor GPU is another; else as many GPUs as hold the model and
    100,000 tokens. Raises SettingError.
    """
    moved = (setting.model or model, setting.gpu or gpu) != (model, gpu)
    generation = setting.generation or generation
    try:
        shape, device = model_by_name(setting.model or model), gpu_by_name(setting.gpu or gpu)
    except (UnknownModelError, UnknownGpuError) as error:
        raise SettingError(str(error)) from error
    last = ""
    for parallel in (1, 2, 4, 8) if moved or tensor_parallel is None else (tensor_parallel,):
        try:
            config = EngineConfig(shape, device, generation, tensor_parallel=parallel, **more)  # type: ignore[arg-type]
        except EngineConfigError as error:
            last = str(error)
            continue
        if config.usable_blocks * config.block_tokens >= _LEAST_POOL_TOKENS or parallel == tensor_parallel:
            return config
        tokens = config.usable_blocks * config.block_tokens
        last = f"{shape.name} leaves {tokens} tokens of KV on {parallel} {device.name}"
    raise SettingError(f"{last}: take a smaller model or a larger GPU")


def names(setting: Setting, small: int, full: int) -> tuple[str, ...]:
    """Of the engines: as many as the setting wants, or by size."""
    count = setting.engines or setting.choose(small, full)
    return tuple(f"engine-{number}" for number in range(count))


def requests_per_second(
    config: EngineConfig, prompt: Lengths, output: Lengths, usage_ratio: float, cached_tokens: int = 0
) -> float:
    """How many requests of a kind keep one engine's KV pool that full, by Little's law and the model's own times.

    ``cached_tokens``: before each prompt, shared by all and held once where prefixes are cached. Raises SettingError
    where prefilling alone would take nearly all of the engine's time.
    """
    chance = np.random.default_rng(0)
    prompts = float(np.mean([prompt.draw(chance) for _ in range(_DRAWS)]))
    outputs = float(np.mean([output.draw(chance) for _ in range(_DRAWS)]))
    timer = config.roofline()
    shared = cached_tokens if config.prefix_caching else 0
    held = prompts + cached_tokens - shared + outputs / 2
    read = prompts + cached_tokens + outputs / 2
    sequences = max(1, round(usage_ratio * config.usable_blocks * config.block_tokens / held))
    computed = max(1, round(prompts + cached_tokens - shared))
    decode = timer.cost(
        Batch(decodes=sequences, decode_context=round(sequences * read), samples=sequences), 0.0
    ).seconds
    prefill = timer.cost(
        Batch(
            prefill_tokens=computed,
            prefill_pairs=computed * (shared + computed / 2),
            prefill_context=shared + computed,
            prefills=1,
            samples=1,
        ),
        0.0,
    ).seconds
    # each request takes outputs iterations, and its own prefill and those of others lie between
    rate = sequences / (outputs * decode + sequences * prefill)
    if rate * prefill > _MOST_PREFILL_RATIO:
        raise SettingError(
            f"{config.model.name} on {config.tensor_parallel} {config.gpu.name} would only prefill at "
            f"{usage_ratio:.0%} usage: take shorter prompts or faster GPUs"
        )
    return rate
