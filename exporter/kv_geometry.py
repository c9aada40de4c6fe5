"""KV bytes a token, from a model's ``config.json`` (as published with the weights)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
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
    "int8": 1,
    "nvfp4": 0.5,
}


FP8_DS_MLA_BYTES = 656
"""A token and layer in vLLM's packed format for latent attention: 512 8-bit values, 4 scales of 4 bytes,
64 rotary values of 2 bytes."""


_MOST = 10_000_000
"""No size of a model is larger, and lists of so many layers still fit."""
_HYBRID_KEYS = (
    "block_configs",
    "hybrid_override_pattern",
    "layers_block_type",
    "attn_layer_period",
    "attn_layer_indices",
    "attn_type_list",
)
"""How published hybrids say which of their layers attend: too many ways to guess at, and a guess is off
by factors."""


class GeometryError(ValueError):
    """A model configuration that doesn't tell the size of its KV cache."""


@dataclass(frozen=True, slots=True)
class KvGeometry:
    """What one token takes in the KV cache.

    ``bytes_per_token`` in the model, what GPUs keep copies of counted once; ``kv_heads`` into how many
    parts tensor parallelism can divide it: 1 for latent attention, which every GPU holds whole.
    """

    bytes_per_token: float
    kv_heads: int

    def bytes_per_token_gpu(self, tensor_parallel: int, pipeline_parallel: int) -> float:
        """On one GPU. Beyond as many GPUs as there are heads, heads are repeated, not divided."""
        return self.bytes_per_token / min(tensor_parallel, self.kv_heads) / pipeline_parallel


def kv_geometry(config: Mapping[str, Any], cache_dtype: str = "auto") -> KvGeometry:
    """Read a model's geometry.

    ``cache_dtype`` is the engine's KV dtype; ``auto`` means the model's own. Standard and grouped
    attention: 2 (K and V) x layers x KV heads x head size x bytes a value; multi-head latent
    attention (DeepSeek): layers x (latent rank + rotary size) x bytes, shared by all heads. Layers
    that keep no growing cache (Mamba, linear attention) are not counted where ``layer_types`` names
    them. Raises GeometryError naming the missing key.
    """
    model = language_part(config)
    for key in _HYBRID_KEYS:
        if model.get(key):
            raise GeometryError(f"the model's layers differ in ways ({key!r}) that aren't read")
    layers = _attention_layers(model)
    if model.get("kv_lora_rank") is not None:
        if cache_dtype == "fp8_ds_mla":
            return KvGeometry(layers * FP8_DS_MLA_BYTES, 1)
        values = number(model, "kv_lora_rank") + number(model, "qk_rope_head_dim")
        return KvGeometry(layers * values * _bytes_a_value(model, cache_dtype), 1)
    heads = number(model, "num_attention_heads")
    kv_heads = heads if model.get("num_key_value_heads") is None else number(model, "num_key_value_heads")
    told = model.get("head_dim") is not None
    head = number(model, "head_dim") if told else number(model, "hidden_size") / heads
    return KvGeometry(2 * layers * kv_heads * head * _bytes_a_value(model, cache_dtype), int(kv_heads))


def _attention_layers(model: Mapping[str, Any]) -> float:
    kinds = model.get("layer_types")
    if isinstance(kinds, list) and kinds:
        layers = float(sum("attention" in str(kind) and "linear" not in str(kind) for kind in kinds))
    else:
        layers = number(model, "num_hidden_layers")
    shared = model.get("num_kv_shared_layers")
    if isinstance(shared, int) and shared > 0:
        layers -= shared  # they use the cache of another layer
    if layers <= 0:
        raise GeometryError("the model's config.json names no attention layer")
    return layers


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
        raise GeometryError(f"the KV dtype {name!r} is not known (known: {known})")
    return DTYPE_BYTES[name]


def language_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a model that sees and hears too, what its language model is made of."""
    text = config.get("text_config")
    return {**config, **text} if isinstance(text, Mapping) else config


def number(model: Mapping[str, Any], key: str) -> float:
    """A whole number above 0. Raises GeometryError naming the key, where it is anything else."""
    value = model.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        raise GeometryError(f"the model's config.json has no positive number {key!r}")
    if value > _MOST or value != int(value):
        raise GeometryError(
            f"the model's config.json: {key!r} is {value:g}: that is no whole number up to {_MOST:,}, as every size of"
            " a model is"
        )
    return float(value)
