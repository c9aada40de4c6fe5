"""Kinds of layers, how an engine groups them, and what a sequence holds."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.kv_geometry import GeometryError, kv_geometry
from exporter.kv_layers import KvLayers, KvModel, kv_model
from tests.support.models import DEEPSEEK_V3, GEMMA_2_9B, GEMMA_3_27B, LLAMA_3_8B, LLAMA_3_70B, QWEN3_8B

TWO_KINDS = {"layer_types": ["sliding_attention"] * 24 + ["full_attention"] * 8, "sliding_window": 1024}


@pytest.mark.parametrize("config", [LLAMA_3_8B, LLAMA_3_70B, QWEN3_8B, DEEPSEEK_V3, GEMMA_3_27B])
def test_all_layers_together_are_what_the_geometry_says(config: dict[str, Any]) -> None:
    assert kv_model(config).bytes_per_token == pytest.approx(kv_geometry(config).bytes_per_token)


def test_one_kind_is_one_group_whatever_its_window() -> None:
    (kind,) = kv_model(LLAMA_3_8B).kinds
    assert (kind.layers, kind.bytes_per_token, kind.window_tokens) == (32, 4096, None)
    windowed = kv_model({**LLAMA_3_8B, "sliding_window": 4096})
    assert windowed.kinds == (KvLayers(32, 4096, 8, 4096),)
    assert windowed.group_layers == 32
    assert [windowed.blocks(tokens, 16) for tokens in (1, 16, 17, 4096, 100_000)] == [1, 1, 2, 256, 257]


def test_a_window_that_is_not_used_is_none() -> None:
    unused = kv_model({**LLAMA_3_8B, "sliding_window": 4096, "use_sliding_window": False})
    assert unused.kinds == kv_model(LLAMA_3_8B).kinds


def test_two_kinds_have_tables_of_their_own_in_groups_of_one_size() -> None:
    model = kv_model({**LLAMA_3_8B, **TWO_KINDS})
    full, sliding = model.kinds
    assert (full.layers, full.window_tokens, sliding.layers, sliding.window_tokens) == (8, None, 24, 1024)
    assert (model.group_layers, model.groups(full), model.groups(sliding)) == (8, 1, 3)
    assert model.blocks(8192, 16) == 512 + 3 * 65
    assert model.block_bytes_gpu(16) == 8 * 4096 * 16


def test_gemma_s_pattern_is_read_from_its_number() -> None:
    full, sliding = kv_model(GEMMA_3_27B).kinds
    assert (full.layers, sliding.layers) == (10, 52)


@pytest.mark.parametrize(("model_type", "layers"), [("gemma2", (21, 21)), ("gemma3_text", (7, 35))])
def test_a_pattern_that_a_config_leaves_out_is_that_of_its_type(
    model_type: str, layers: tuple[int, int]
) -> None:
    config = {**GEMMA_2_9B, "model_type": model_type}
    full, sliding = kv_model(config).kinds
    assert (full.layers, sliding.layers) == layers


def test_kinds_that_are_nearly_as_many_are_padded_to_one_size() -> None:
    nearly = KvModel((KvLayers(13, 1, 1), KvLayers(12, 1, 1, 128)))
    assert (nearly.group_layers, [nearly.groups(kind) for kind in nearly.kinds]) == (13, [1, 1])
    far = KvModel((KvLayers(18, 1, 1), KvLayers(12, 1, 1, 128)))
    assert (far.group_layers, [far.groups(kind) for kind in far.kinds]) == (12, [2, 1])


def test_heads_are_divided_and_then_repeated() -> None:
    model = kv_model(LLAMA_3_8B)
    assert [model.block_bytes_gpu(16, gpus) for gpus in (1, 8, 16)] == [2_097_152, 262_144, 262_144]


def test_layers_with_a_state_are_told_and_unknown_kinds_refused() -> None:
    hybrid = kv_model({**LLAMA_3_8B, "layer_types": ["linear_attention"] * 24 + ["full_attention"] * 8})
    assert (hybrid.stateful_layers, hybrid.kinds[0].layers) == (24, 8)
    with pytest.raises(GeometryError, match="chunked_attention"):
        kv_model({**LLAMA_3_8B, "layer_types": ["chunked_attention"] * 32})
    with pytest.raises(GeometryError, match="sliding_window"):
        kv_model({**LLAMA_3_8B, "layer_types": TWO_KINDS["layer_types"]})
