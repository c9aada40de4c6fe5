"""Models by name: the shapes that arithmetic and memory follow from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from exporter.kv_geometry import KvGeometry, kv_geometry


class UnknownModelError(ValueError):
    """A name that is no model of the table."""


@dataclass(frozen=True, slots=True)
class Model:
    """A decoder of the Llama kind: attention with grouped heads and a gated feed-forward block a layer.

    ``experts`` > 0: the feed-forward block is that many experts of width ``feed_forward``, of which each
    token uses ``active_experts``. ``source`` names the published config.json.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    feed_forward: int
    vocabulary: int
    source: str
    experts: int = 0
    active_experts: int = 0
    value_bytes: float = 2.0
    kv_dtype: str = "bfloat16"
    tied_embeddings: bool = False

    @property
    def kv(self) -> KvGeometry:
        """What one token takes in the KV cache."""
        return _geometry(self)

    @property
    def attention_values(self) -> int:
        """Weights of one layer's four projections."""
        return self.hidden * self.head_size * (2 * self.heads + 2 * self.kv_heads)

    @property
    def feed_forward_values(self) -> int:
        """Weights of one layer's feed-forward block, of one expert where there are several."""
        return 3 * self.hidden * self.feed_forward

    @property
    def head_values(self) -> int:
        """Weights of the projection onto the vocabulary."""
        return self.hidden * self.vocabulary

    @property
    def weight_bytes(self) -> float:
        """All weights, embeddings included; norms and routers are too small to count."""
        layer = self.attention_values + self.feed_forward_values * max(1, self.experts)
        tables = self.head_values * (1 if self.tied_embeddings else 2)
        return (self.layers * layer + tables) * self.value_bytes


@lru_cache(maxsize=64)
def _geometry(model: Model) -> KvGeometry:
    """Read once a model: sizes of blocks are asked for each second."""
    return kv_geometry(
        {
            "num_hidden_layers": model.layers,
            "num_attention_heads": model.heads,
            "num_key_value_heads": model.kv_heads,
            "head_dim": model.head_size,
        },
        model.kv_dtype,
    )


_CONFIG = "config.json as published with the weights of "

MODELS: Mapping[str, Model] = {
    "llama-8b": Model("llama-8b", 32, 4096, 32, 8, 128, 14336, 128256, _CONFIG + "meta-llama/Llama-3.1-8B"),
    "llama-70b": Model(
        "llama-70b", 80, 8192, 64, 8, 128, 28672, 128256, _CONFIG + "meta-llama/Llama-3.1-70B"
    ),
    "qwen3-32b": Model("qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936, _CONFIG + "Qwen/Qwen3-32B"),
    "qwen3-30b-a3b": Model(
        "qwen3-30b-a3b",
        48,
        2048,
        32,
        4,
        128,
        768,
        151936,
        _CONFIG + "Qwen/Qwen3-30B-A3B-Instruct-2507",
        experts=128,
        active_experts=8,
    ),
    "tiny": Model(
        "tiny",
        2,
        128,
        4,
        2,
        32,
        256,
        2048,
        "the model that make real builds (tests/real_engine/model.py)",
        tied_embeddings=True,
    ),
}
"""By the short name that commands take."""


def model_by_name(name: str) -> Model:
    """The model of that short name. Raises UnknownModelError."""
    try:
        return MODELS[name]
    except KeyError:
        raise UnknownModelError(f"no model {name!r} (known: {', '.join(MODELS)})") from None
