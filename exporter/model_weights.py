"""How many weights a model has, from its ``config.json``: what loads, and what a token is multiplied with.

Norms, biases and routers are left out: together below a thousandth. Published totals of eight models are in the test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exporter.kv_geometry import DTYPE_BYTES, GeometryError, language_part, number

_TIED = ("gemma", "cohere")
"""Model types whose head is their embeddings where a config doesn't say it, as transformers has it."""
_GATED = 3
"""Matrices of a feed-forward block: up, gate and down."""
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")
_PACKED = {"awq": 4, "gptq": 4, "auto-round": 4}
_SCALE_BITS = 16 + 4
"""Beside each group of packed weights: a scale and a zero point."""
_8BIT = frozenset({"fp8", "fbgemm_fp8", "modelopt"})


@dataclass(frozen=True, slots=True)
class Weights:
    """``tables``: of embeddings and head; ``layers``: of all layers; ``active``: that a token meets, with the head.

    ``attention_width``: heads x (size of a key + size of a value), in one layer: what attention itself multiplies.
    ``bits``: of a weight in the layers, ``table_bytes``: of one in the tables.
    """

    tables: float
    layers: float
    active: float
    attention_width: float
    bits: float
    table_bytes: float

    @property
    def count(self) -> float:
        """All."""
        return self.tables + self.layers

    @property
    def bytes(self) -> float:
        """As they are loaded."""
        return self.layers * self.bits / 8 + self.tables * self.table_bytes


def weights(config: Mapping[str, Any], dtype: str = "auto", loaded_bytes: float | None = None) -> Weights:
    """Read a model's. ``dtype``: of the weights; ``auto``: as the config says, quantisation included.

    ``loaded_bytes``: what all of them take, where that is known: it tells how large they are where the config doesn't.
    Raises GeometryError naming the missing key.
    """
    model = language_part(config)
    hidden, layers = number(model, "hidden_size"), number(model, "num_hidden_layers")
    attention, width = _attention(model, hidden)
    dense, sparse, sparse_active = _feed_forward(model, hidden)
    sparse_layers = _sparse_layers(model, layers)
    blocks = layers * attention + (layers - sparse_layers) * dense + sparse_layers * sparse
    active = layers * attention + (layers - sparse_layers) * dense + sparse_layers * sparse_active
    head = number(model, "vocab_size") * hidden
    tied = model.get("tie_word_embeddings")
    if tied is None:
        tied = str(model.get("model_type", "")).startswith(_TIED)
    tables = head if tied else 2 * head
    bits, table_bytes = _sizes(model, dtype)
    if bits is None:
        packed = 0.0 if loaded_bytes is None else loaded_bytes - tables * table_bytes
        if packed <= 0:
            raise GeometryError(
                f"its quantization_config, of method {_method(model)!r}, doesn't say its bits:"
                " say --weight-dtype or --weight-gib"
            )
        bits = packed * 8 / blocks
    return Weights(tables, blocks, active + head, width, bits, table_bytes)


def _attention(model: Mapping[str, Any], hidden: float) -> tuple[float, float]:
    """Weights of one layer's attention, and its width."""
    heads = number(model, "num_attention_heads")
    if model.get("kv_lora_rank") is not None:
        rank, rotary = number(model, "kv_lora_rank"), number(model, "qk_rope_head_dim")
        plain, value = number(model, "qk_nope_head_dim"), number(model, "v_head_dim")
        query = heads * (plain + rotary)
        low = model.get("q_lora_rank")
        asked = hidden * query if low is None else number(model, "q_lora_rank") * (hidden + query)
        latent = hidden * (rank + rotary) + rank * heads * (plain + value)
        return asked + latent + heads * value * hidden, heads * (plain + rotary + value)
    kv_heads = heads if model.get("num_key_value_heads") is None else number(model, "num_key_value_heads")
    head = hidden / heads if model.get("head_dim") is None else number(model, "head_dim")
    return hidden * head * (2 * heads + 2 * kv_heads), heads * 2 * head


def _feed_forward(model: Mapping[str, Any], hidden: float) -> tuple[float, float, float]:
    """Weights of one layer's: where it is dense, where it has experts, and of these what a token meets."""
    experts = _experts(model)
    if experts and model.get("moe_intermediate_size") is not None:
        each = _GATED * hidden * number(model, "moe_intermediate_size")
    else:
        each = _GATED * hidden * number(model, "intermediate_size")
    if not experts:
        return each, 0.0, 0.0
    dense = _GATED * hidden * float(model.get("intermediate_size") or 0)
    shared = float(model.get("n_shared_experts") or 0) * each
    wide = model.get("shared_expert_intermediate_size")
    shared += _GATED * hidden * float(wide or 0)
    chosen = number(model, "num_experts_per_tok")
    return dense, experts * each + shared, chosen * each + shared


def _experts(model: Mapping[str, Any]) -> float:
    return next((float(model[key]) for key in _EXPERTS if model.get(key)), 0.0)


def _sparse_layers(model: Mapping[str, Any], layers: float) -> float:
    if not _experts(model):
        return 0.0
    dense_first = float(model.get("first_k_dense_replace") or 0)
    only_dense = model.get("mlp_only_layers")
    listed = len(only_dense) if isinstance(only_dense, list) else 0
    step = float(model.get("decoder_sparse_step") or model.get("moe_layer_freq") or 1)
    return float((layers - dense_first - listed) // step)


def _method(model: Mapping[str, Any]) -> str:
    """Of quantisation, empty where there is none that is named."""
    told = model.get("quantization_config")
    return str(told.get("quant_method") or "") if isinstance(told, Mapping) else ""


def _sizes(model: Mapping[str, Any], dtype: str) -> tuple[float | None, float]:
    """Bits of a weight in the layers, None where the config doesn't say them; bytes of one in the tables."""
    if dtype != "auto":
        if dtype not in DTYPE_BYTES:
            raise GeometryError(
                f"the weights' dtype {dtype!r} is not known (known: {', '.join(sorted(DTYPE_BYTES))})"
            )
        size = DTYPE_BYTES[dtype]
        return size * 8, max(size, 2.0)
    name = str(model.get("dtype") or model.get("torch_dtype") or "").removeprefix("torch.")
    if name not in DTYPE_BYTES:
        raise GeometryError("the model's config.json has no torch_dtype that is known: say --weight-dtype")
    plain = DTYPE_BYTES[name]
    told = model.get("quantization_config")
    if not isinstance(told, Mapping):
        return plain * 8, plain
    method = _method(model)
    if method in _8BIT:
        return 8.0, plain
    bits = told.get("bits", _PACKED.get(method))
    if isinstance(bits, bool) or not isinstance(bits, int | float):
        return None, plain
    group = told.get("group_size")
    scales = _SCALE_BITS / group if isinstance(group, int) and group > 0 else 0.0
    return float(bits) + scales, plain
