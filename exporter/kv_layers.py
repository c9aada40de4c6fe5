"""KV cache layer by layer, from a model's ``config.json``: kinds of layers, and how an engine groups them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exporter.kv_geometry import GeometryError, kv_geometry, language_part

_SLIDING, _FULL = "sliding_attention", "full_attention"
_PATTERNS = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4}
"""Each which layer has no window, by model type: what transformers takes where a config doesn't say it."""
_FEW_MORE = 1.5
"""Kinds whose counts are nearer than this share one size of group, padded (vLLM 0.32, ``kv_cache_utils.py``)."""


@dataclass(frozen=True, slots=True)
class KvLayers:
    """Layers that cache alike: ``bytes_per_token`` is of one of them, in the whole model.

    ``window_tokens``: how far back they look; None: to the beginning. ``kv_heads``: as ``KvGeometry`` has it.
    """

    layers: int
    bytes_per_token: float
    kv_heads: int
    window_tokens: int | None = None

    def bytes_per_token_gpu(self, tensor_parallel: int) -> float:
        """Of one layer on one GPU. Beyond as many GPUs as there are heads, heads are repeated."""
        return self.bytes_per_token / min(tensor_parallel, self.kv_heads)


@dataclass(frozen=True, slots=True)
class KvModel:
    """All layers that cache, the longest-sighted kind first; ``stateful_layers`` keep a state of one size instead."""

    kinds: tuple[KvLayers, ...]
    stateful_layers: int = 0

    @property
    def group_layers(self) -> int:
        """Layers whose pages one block has: an engine gives every kind of layer block tables of its own.

        As vLLM does it: one kind is one group; of several, groups are as large as the smallest kind, or as the largest
        where that has few more.
        """
        counts = [kind.layers for kind in self.kinds]
        return max(counts) if max(counts) < min(counts) * _FEW_MORE else min(counts)

    def groups(self, kind: KvLayers) -> int:
        """Block tables that a kind has."""
        return -(-kind.layers // self.group_layers)

    def block_bytes_gpu(self, block_tokens: int, tensor_parallel: int = 1) -> float:
        """What a block takes on one GPU, in all layers of a group."""
        page = self.kinds[0].bytes_per_token_gpu(tensor_parallel) * block_tokens
        return page * self.group_layers

    def blocks(self, tokens: int, block_tokens: int) -> int:
        """That a decoding sequence of so many tokens holds: of a window no more than it covers, and one begun."""
        held = 0
        for kind in self.kinds:
            whole = -(-tokens // block_tokens)
            if kind.window_tokens is not None:
                whole = min(whole, -(-kind.window_tokens // block_tokens) + 1)
            held += whole * self.groups(kind)
        return held

    @property
    def bytes_per_token(self) -> float:
        """Of all layers together, as long as no window is full."""
        return sum(kind.layers * kind.bytes_per_token for kind in self.kinds)


def kv_model(config: Mapping[str, Any], cache_dtype: str = "auto") -> KvModel:
    """Read a model's layers. Raises GeometryError, as ``kv_geometry`` does, and of kinds that aren't known."""
    geometry = kv_geometry(config, cache_dtype)
    model = language_part(config)
    kinds, stateful = _kinds(model)
    caching = [kind for kind in kinds if kind is not None]
    each = geometry.bytes_per_token / len(caching)
    window = _window(model) if _SLIDING in caching else None
    found = []
    for kind, window_tokens in ((_FULL, None), (_SLIDING, window)):
        count = caching.count(kind)
        if count:
            found.append(KvLayers(count, each, geometry.kv_heads, window_tokens))
    return KvModel(tuple(found), stateful)


def _kinds(model: Mapping[str, Any]) -> tuple[Sequence[str | None], int]:
    """Of each layer with a cache of its own; and how many layers keep a state instead."""
    count = int(model["num_hidden_layers"]) if model.get("num_hidden_layers") else 0
    told = model.get("layer_types")
    if isinstance(told, list) and told:
        names = [str(each) for each in told]
        kinds = [_kind(name) for name in names]
        stateful = kinds.count(None)
    else:
        kinds, stateful = [*_by_pattern(model, count)], 0
    shared = model.get("num_kv_shared_layers")
    if isinstance(shared, int) and shared > 0:
        kinds = kinds[:-shared]
    return [kind for kind in kinds if kind is not None], stateful


def _kind(name: str) -> str | None:
    if "linear" in name or "attention" not in name:
        return None
    if name == _SLIDING:
        return _SLIDING
    if name in {_FULL, "attention"}:
        return _FULL
    raise GeometryError(f"layer_types has {name!r}, of which it isn't known how far back it looks")


def _by_pattern(model: Mapping[str, Any], count: int) -> Sequence[str]:
    """Where no list says it: a window that all have, or all but each nth."""
    if model.get("sliding_window") is None or model.get("use_sliding_window") is False:
        return [_FULL] * count
    every = model.get("sliding_window_pattern") or _PATTERNS.get(str(model.get("model_type")))
    if isinstance(every, int) and every > 1:
        return [_FULL if (place + 1) % every == 0 else _SLIDING for place in range(count)]
    return [_SLIDING] * count


def _window(model: Mapping[str, Any]) -> int:
    window = model.get("sliding_window")
    if isinstance(window, bool) or not isinstance(window, int) or window <= 0:
        raise GeometryError(
            "the model's config.json has sliding layers, and no positive number 'sliding_window'"
        )
    return window
