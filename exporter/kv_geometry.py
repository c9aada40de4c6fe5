"""KV bytes a token, from a model's ``config.json`` (as published with the weights)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DTYPE_BYTES: Mapping[str, float] = {
    "float32": 4,
    "fp32": 4,
    "float16": 2,
    "fp16": 2,
    "half": 2,
    "bfloat16": 2,
    "bf16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
    "fp8_ds_mla": 1,
    "int8": 1,
    "nvfp4": 0.5,
}


class GeometryError(ValueError):
    """A model configuration that doesn't tell the size of its KV cache."""


def kv_bytes_per_token(config: Mapping[str, Any], cache_dtype: str = "auto") -> float:
    """Bytes of KV cache one token takes in the whole model, over all its GPUs.

    ``cache_dtype`` is the engine's KV dtype; ``auto`` means the model's own. Standard and grouped
    attention: 2 (K and V) x layers x KV heads x head size x bytes a value; multi-head latent
    attention (DeepSeek): layers x (latent rank + rotary size) x bytes, shared by all heads, so each
    tensor-parallel GPU holds it whole. Layers that keep no growing cache (Mamba, linear attention)
    are not counted where ``layer_types`` names them. Raises GeometryError naming the missing key.
    """
    text = config.get("text_config")
    model: Mapping[str, Any] = {**config, **text} if isinstance(text, Mapping) else config
    layers = _attention_layers(model)
    width = _bytes_a_value(model, cache_dtype)
    latent = model.get("kv_lora_rank")
    if latent is not None:
        return layers * (_number(model, "kv_lora_rank") + _number(model, "qk_rope_head_dim")) * width
    heads = _number(model, "num_attention_heads")
    kv_heads = heads if model.get("num_key_value_heads") is None else _number(model, "num_key_value_heads")
    told = model.get("head_dim") is not None
    head = _number(model, "head_dim") if told else _number(model, "hidden_size") / heads
    return 2 * layers * kv_heads * head * width


def _attention_layers(model: Mapping[str, Any]) -> float:
    kinds = model.get("layer_types")
    if isinstance(kinds, list) and kinds:
        return float(sum("attention" in str(kind) and "linear" not in str(kind) for kind in kinds))
    return _number(model, "num_hidden_layers")


def _bytes_a_value(model: Mapping[str, Any], cache_dtype: str) -> float:
    name = cache_dtype
    if name in {"auto", ""}:
        name = str(model.get("dtype") or model.get("torch_dtype") or "").removeprefix("torch.")
        if not name:
            raise GeometryError(
                "the model's config.json has no torch_dtype: set the engine's kv_bytes_per_token"
            )
    if name not in DTYPE_BYTES:
        known = ", ".join(sorted(DTYPE_BYTES))
        raise GeometryError(f"the KV dtype {name!r} is not known (known: {known}): set kv_bytes_per_token")
    return DTYPE_BYTES[name]


def _number(model: Mapping[str, Any], key: str) -> float:
    value = model.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise GeometryError(f"the model's config.json has no positive number {key!r}: set kv_bytes_per_token")
    return float(value)
