from __future__ import annotations

from typing import Any

import pytest

from exporter.kv_geometry import GeometryError, kv_geometry


def kv_bytes_per_token(config: dict[str, Any], cache_dtype: str = "auto") -> float:
    return kv_geometry(config, cache_dtype).bytes_per_token


LLAMA_70B: dict[str, Any] = {
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
    "torch_dtype": "bfloat16",
}
DEEPSEEK_V3: dict[str, Any] = {
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "hidden_size": 7168,
    "torch_dtype": "bfloat16",
}


def test_grouped_heads_of_the_incident_s_model() -> None:
    assert kv_bytes_per_token(LLAMA_70B) == 327_680
    assert kv_bytes_per_token({**LLAMA_70B, "head_dim": 128, "hidden_size": None}) == 327_680


def test_an_8_bit_cache_takes_half() -> None:
    assert kv_bytes_per_token(LLAMA_70B, "fp8_e4m3") == 163_840


def test_without_grouping_every_head_has_its_own() -> None:
    without = {key: value for key, value in LLAMA_70B.items() if key != "num_key_value_heads"}
    assert kv_bytes_per_token(without) == 8 * 327_680


def test_latent_attention_shares_one_vector_over_all_heads() -> None:
    assert kv_bytes_per_token(DEEPSEEK_V3) == 61 * (512 + 64) * 2


def test_each_gpu_holds_a_latent_vector_whole() -> None:
    assert kv_geometry(DEEPSEEK_V3).bytes_per_token_gpu(8, 1) == 70_272
    assert kv_geometry(DEEPSEEK_V3).bytes_per_token_gpu(8, 2) == 35_136


def test_vllm_s_packed_format_for_latent_attention() -> None:
    assert kv_bytes_per_token(DEEPSEEK_V3, "fp8_ds_mla") == 61 * 656


def test_more_gpus_than_heads_repeat_heads() -> None:
    geometry = kv_geometry(LLAMA_70B)
    shares = [geometry.bytes_per_token_gpu(gpus, 1) for gpus in (1, 4, 8, 16)]
    assert shares == [327_680, 81_920, 40_960, 40_960]


def test_a_vision_model_s_text_part_counts() -> None:
    assert kv_bytes_per_token({"model_type": "x", "text_config": LLAMA_70B}) == 327_680


def test_layers_without_a_growing_cache_do_not_count() -> None:
    kinds = ["linear_attention"] * 60 + ["full_attention"] * 20
    assert kv_bytes_per_token({**LLAMA_70B, "layer_types": kinds}) == 327_680 / 4


def test_the_tiny_model_of_the_recordings() -> None:
    tiny = {
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "torch_dtype": "bfloat16",
    }
    assert kv_bytes_per_token(tiny) == 512


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"num_attention_heads": "many"}, "num_attention_heads"),
        ({"num_key_value_heads": 0}, "num_key_value_heads"),
        ({"hidden_size": None}, "hidden_size"),
        ({"torch_dtype": None}, "torch_dtype"),
        ({"torch_dtype": "int3"}, "int3"),
        ({"num_hidden_layers": True}, "num_hidden_layers"),
    ],
)
def test_what_is_missing_is_named(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(GeometryError, match=named):
        kv_bytes_per_token({**LLAMA_70B, **changed})


def test_layers_that_share_another_s_cache_do_not_count() -> None:
    assert kv_bytes_per_token({**LLAMA_70B, "num_kv_shared_layers": 20}) == 327_680 * 60 / 80


@pytest.mark.parametrize(
    "hybrid",
    [
        {"block_configs": [{"attention": {"no_op": True}}]},
        {"hybrid_override_pattern": "M-M-M*-"},
        {"attn_layer_period": 8},
        {"attn_type_list": [0, 0, 1]},
        {"layers_block_type": ["mamba", "attention"]},
        {"layer_types": ["linear_attention"] * 80},
    ],
)
def test_hybrids_are_not_guessed_at(hybrid: dict[str, Any]) -> None:
    with pytest.raises(GeometryError):
        kv_geometry({**LLAMA_70B, **hybrid})
