"""Fleets that are well: engines that fit their GPUs, and the load that they carry with ease."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import EngineConfig, EngineConfigError, Generation
from drill.serving.models import UnknownModelError, model_by_name
from drill.serving.step_time import Batch, StepCost
from drill.workload.lengths import Lengths
from drill.workload.rates import Rate
from exporter.hardware import UnknownGpuError, gpu_by_name

_DRAWS = 2000
FloatArray = NDArray[np.float64]
_LEAST_POOL_TOKENS = 100_000


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
        if config.usable_blocks * config.block_tokens >= _LEAST_POOL_TOKENS or (
            parallel == tensor_parallel and not moved
        ):
            return config
        tokens = config.usable_blocks * config.block_tokens
        last = (
            f"{shape.name} leaves {tokens:,} tokens of KV on {parallel} {device.name}, and {_LEAST_POOL_TOKENS:,} are"
            " needed"
        )
    raise SettingError(f"{last}: take a smaller model or a larger GPU")


def names(setting: Setting, small: int, full: int) -> tuple[str, ...]:
    """Of the engines: as many as the setting wants, or by size."""
    count = setting.engines or setting.choose(small, full)
    return tuple(f"engine-{number}" for number in range(count))


def decode_cost(config: EngineConfig, sequences: int, context_tokens: float) -> StepCost:
    """Of one iteration in which so many sequences with so long a context each get a token."""
    batch = Batch(decodes=sequences, decode_context=round(sequences * context_tokens), samples=sequences)
    return config.roofline().cost(batch, 0.0)


def prefill_seconds(config: EngineConfig, tokens: int) -> float:
    """How long an iteration takes in which a prompt of so many tokens is computed whole, and nothing else."""
    batch = Batch(
        prefill_tokens=tokens,
        prefill_pairs=tokens * tokens / 2,
        prefill_context=tokens,
        prefills=1,
        samples=1,
    )
    return config.roofline().cost(batch, 0.0).seconds


def requests_per_second(
    config: EngineConfig, prompt: Lengths, output: Lengths, usage_ratio: float, cached_tokens: int = 0
) -> float:
    """How many requests of a kind keep one engine's KV pool that full, by Little's law and the model's own times.

    ``cached_tokens``: before each prompt, shared by all and held once where prefixes are cached.
    """
    steady = _steady(config, prompt, output, usage_ratio, cached_tokens)
    return steady.sequences / steady.request_seconds


def request_seconds(
    config: EngineConfig, prompt: Lengths, output: Lengths, usage_ratio: float, cached_tokens: int = 0
) -> float:
    """How long such a request then takes, from its prompt's first chunk to its last token."""
    return _steady(config, prompt, output, usage_ratio, cached_tokens).request_seconds


def rising(rate: float, span: tuple[float, float], setting: Setting) -> Rate:
    """So many requests a second between two times, reached as the setting wants. Raises SettingError."""
    start, end = span
    return Rate.ramped(rate, start, end, setting.ramp_within(end - start))


class _Steady(NamedTuple):
    """An engine whose pool stays that full: how many sequences, and how long the mean one is there."""

    sequences: float
    request_seconds: float


@lru_cache(maxsize=16)
def _drawn(prompt: Lengths, output: Lengths) -> tuple[FloatArray, FloatArray]:
    """Of so many requests: always the same."""
    chance = np.random.default_rng(0)
    prompts, outputs = (
        np.array([each.draw(chance) for _ in range(_DRAWS)], dtype=float) for each in (prompt, output)
    )
    return prompts, outputs


def _steady(
    config: EngineConfig, prompt: Lengths, output: Lengths, usage_ratio: float, cached_tokens: int
) -> _Steady:
    prompts, outputs = _drawn(prompt, output)
    shared = cached_tokens if config.prefix_caching else 0
    own = prompts + cached_tokens - shared
    # long answers hold more for longer: a request takes this many token slots times iterations
    slots = float(np.mean(outputs * (own + outputs / 2)))
    held = slots / float(np.mean(outputs))
    sequences = usage_ratio * config.usable_blocks * config.block_tokens / held
    decode = decode_cost(config, max(1, round(sequences)), held + shared).seconds
    computed = max(1, round(float(np.mean(own))))
    batch = Batch(
        prefill_tokens=computed,
        prefill_pairs=computed * (shared + computed / 2),
        prefill_context=shared + computed,
        prefills=1,
        samples=1,
    )
    prefill = config.roofline().cost(batch, 0.0).seconds
    # iterations are as much longer as prefills of others lie between
    return _Steady(sequences, float(np.mean(outputs)) * decode + sequences * prefill)
