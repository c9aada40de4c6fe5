"""What the settings of an engine tell the cycle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from exporter.derive.phenomenon import EngineFacts
from exporter.kv_geometry import GeometryError, kv_bytes_per_token
from exporter.settings import SettingsError
from exporter.sidecar_settings import EngineSettings


def engine_facts(settings: EngineSettings) -> EngineFacts:
    """Make the facts of one engine; its model's config.json is read here, once.

    Raises SettingsError, with the file, where that can't be read or doesn't tell the KV bytes a token.
    """
    per_token = settings.kv_bytes_per_token
    if per_token is None and settings.model_config is not None:
        config = _model_config(settings.model_config)
        try:
            per_token = kv_bytes_per_token(config, settings.kv_cache_dtype)
        except GeometryError as error:
            raise SettingsError(
                f"{settings.model_config}: {error}; set kv_bytes_per_token of engine {settings.name} instead"
            ) from error
    parallel = (settings.tensor_parallel, settings.pipeline_parallel)
    told = any(each is not None for each in parallel)
    return EngineFacts(
        kv_bytes_per_token=per_token,
        gpus_per_replica=(parallel[0] or 1) * (parallel[1] or 1) if told else None,
        block_group_tokens=tuple(float(tokens) for tokens in settings.block_group_tokens),
        time_to_first_token_slo_seconds=settings.slo.ttft_seconds,
        time_per_output_token_slo_seconds=settings.slo.tpot_seconds,
        long_prompt_tokens=float(settings.long_prompt_tokens),
    )


def _model_config(file: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: not a model's config.json: {error}") from error
