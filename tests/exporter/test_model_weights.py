"""Published totals of published models; what isn't said is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from exporter.kv_geometry import GeometryError
from exporter.model_weights import weights
from tests.support.models import (
    DEEPSEEK_V3,
    GEMMA_2_9B,
    GEMMA_3_27B,
    LLAMA_3_8B,
    LLAMA_3_70B,
    QWEN3_8B,
    QWEN3_30B_A3B,
)

PUBLISHED: list[tuple[dict[str, Any], float, float]] = [
    (LLAMA_3_8B, 8.03, 8.03),
    (LLAMA_3_70B, 70.6, 70.6),
    (QWEN3_8B, 8.2, 8.2),
    (QWEN3_30B_A3B, 30.5, 3.3),
    (DEEPSEEK_V3, 671.0, 37.0),
]
"""Billions in all and for a token, as the model cards have it; a card counts the embeddings among the latter."""


@pytest.mark.parametrize(("config", "count", "active"), PUBLISHED)
def test_as_many_as_the_model_card_says(config: dict[str, Any], count: float, active: float) -> None:
    found = weights(config)
    head = config["vocab_size"] * config["hidden_size"]
    assert found.count / 1e9 == pytest.approx(count, rel=0.002)
    assert (found.active + head) / 1e9 == pytest.approx(active, rel=0.02)


def test_a_tied_head_counts_once_and_a_text_part_is_read() -> None:
    assert weights(GEMMA_3_27B).count / 1e9 == pytest.approx(27.0, rel=0.002)
    # whose config leaves it out
    assert weights(GEMMA_2_9B).count / 1e9 == pytest.approx(9.24, rel=0.002)


def test_bytes_are_by_dtype_and_quantisation() -> None:
    plain = weights(LLAMA_3_8B)
    assert plain.bytes == plain.count * 2
    assert weights(LLAMA_3_8B, "fp8").bytes == plain.layers + plain.tables * 2
    packed = weights(
        {**LLAMA_3_8B, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}
    )
    assert packed.bytes == pytest.approx(plain.layers * (4 + 20 / 128) / 8 + plain.tables * 2)
    assert weights(DEEPSEEK_V3).bytes == pytest.approx(671e9, rel=0.01)


def test_bits_that_the_config_does_not_say_are_told_by_what_is_loaded() -> None:
    packed = {**LLAMA_3_8B, "quantization_config": {"quant_method": "mxfp4"}}
    plain = weights(LLAMA_3_8B)
    size = plain.layers * 4.25 / 8 + plain.tables * 2
    found = weights(packed, loaded_bytes=size)
    assert (found.bits, found.bytes) == (pytest.approx(4.25), pytest.approx(size))
    with pytest.raises(GeometryError, match="--weight-gib"):
        weights(packed, loaded_bytes=1e9)
    assert weights(LLAMA_3_8B, loaded_bytes=size) == plain


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"vocab_size": None}, "vocab_size"),
        ({"vocab_size": math.nan}, "vocab_size"),
        ({"num_hidden_layers": math.inf}, "num_hidden_layers"),
        ({"intermediate_size": None}, "intermediate_size"),
        ({"torch_dtype": "int3"}, "--weight-dtype"),
        ({"quantization_config": {"quant_method": "new"}}, "'new', doesn't say its bits"),
    ],
)
def test_what_is_missing_is_named(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(GeometryError, match=told):
        weights({**LLAMA_3_8B, **changed})
