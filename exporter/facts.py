"""What the settings of an engine tell the cycle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from exporter.derive.blocks import gpu_bytes_per_token
from exporter.derive.phenomenon import EngineFacts
from exporter.engine_settings import EngineSettings
from exporter.kv_geometry import GeometryError, KvGeometry, kv_geometry
from exporter.sample import EngineSample
from exporter.settings import RefusedError


def engine_facts(settings: EngineSettings) -> EngineFacts:
    """Make the facts of one engine; its model's config.json is read here, once.

    Raises RefusedError (``model_config``) where that can't be read or doesn't tell the KV bytes a token.
    """
    tensor, pipeline = settings.tensor_parallel, settings.pipeline_parallel
    gpus = (tensor or 1) * (pipeline or 1) if tensor is not None or pipeline is not None else None
    per_token, per_gpu = settings.kv_bytes_per_token, None
    if per_token is not None:
        # of a model that is only told, an even split is the best that can be known
        per_gpu = per_token / gpus if gpus else None
    elif settings.model_config is not None:
        geometry = _geometry(settings, settings.model_config)
        per_token = geometry.bytes_per_token
        per_gpu = geometry.bytes_per_token_gpu(tensor or 1, pipeline or 1) if gpus else None
    return EngineFacts(
        kv_bytes_per_token=per_token,
        kv_bytes_per_token_gpu=per_gpu,
        gpus_per_replica=gpus,
        block_group_tokens=tuple(float(tokens) for tokens in settings.block_group_tokens),
        time_to_first_token_slo_seconds=settings.slo.ttft_seconds,
        time_per_output_token_slo_seconds=settings.slo.tpot_seconds,
        long_prompt_tokens=float(settings.long_prompt_tokens),
        gpus=None if settings.gpus is None else tuple(map(str, settings.gpus)),
    )


def keys_for_bytes(settings: EngineSettings, sample: EngineSample) -> tuple[str, ...]:
    """Name the keys any one of which would tell the model's KV bytes a token; none where it is known."""
    if settings.kv_bytes_per_token is not None or settings.model_config is not None:
        return ()
    keys = bytes_keys(sample)
    gpus_told = settings.tensor_parallel is not None or settings.pipeline_parallel is not None
    return () if gpus_told and "tensor_parallel" in keys else keys


def bytes_keys(sample: EngineSample) -> tuple[str, ...]:
    """Name the keys any one of which tells the KV bytes a token of a model served like this."""
    keys = ("kv_bytes_per_token", "model_config")
    # Where the engine tells what one GPU holds, the number of GPUs is all that is missing.
    tells_gpu = any(gpu_bytes_per_token(rank, EngineFacts()) is not None for rank in sample.ranks)
    return (*keys, "tensor_parallel") if tells_gpu else keys


def with_all_told(facts: EngineFacts) -> EngineFacts:
    """The facts of an engine whose settings tell all that they can: what they leave out is filled in with 1."""
    return replace(
        facts,
        kv_bytes_per_token=facts.kv_bytes_per_token or 1.0,
        kv_bytes_per_token_gpu=facts.kv_bytes_per_token_gpu or 1.0,
        gpus_per_replica=facts.gpus_per_replica or 1,
    )


def _geometry(settings: EngineSettings, file: Path) -> KvGeometry:
    try:
        return kv_geometry(_model_config(file), settings.kv_cache_dtype)
    except GeometryError as error:
        raise RefusedError("model_config", f"{file}: {error}; set kv_bytes_per_token instead") from error


def _model_config(file: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise RefusedError("model_config", f"{file}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError("model_config", f"{file}: not a model's config.json: {error}") from error
