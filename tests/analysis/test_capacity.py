"""Blocks as real engines told them, what fits, what comes back sooner, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as some

from analysis.break_even import Costs, Reached, changes
from analysis.capacity import GIB, CapacityError, Serving, blocks_in, fitted, tail
from analysis.plan_command import plan_command
from exporter.hardware import gpu_by_name
from exporter.kv_layers import KvLayers, kv_model
from exporter.model_weights import weights
from tests.support.models import DEEPSEEK_V3, GEMMA_3_27B, LLAMA_3_8B, LLAMA_3_70B, QWEN3_8B

TINY: dict[str, Any] = {
    "num_hidden_layers": 2,
    "hidden_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "dtype": "bfloat16",
}
"""Of the recordings: a real vLLM 0.32 gave 4 MiB, and told 256 blocks of 32 tokens."""
PACKED = {**LLAMA_3_8B, "quantization_config": {"quant_method": "mxfp4"}}


def test_blocks_of_the_recorded_engines() -> None:
    assert blocks_in(4_194_304, kv_model(TINY), Serving(block_tokens=32)) == 256


def test_an_rtx_4090_that_served_llama_8b() -> None:
    """A public run of vLLM 0.19 told 2,588 blocks at 0.9: what it kept for itself is all that can't be known."""
    model, card = kv_model(LLAMA_3_8B), gpu_by_name("rtx-4090")
    size = weights(LLAMA_3_8B).bytes
    kept = 0.9 * card.memory_bytes - size - 2588 * model.block_bytes_gpu(16)
    assert 1.1 < kept / GIB < 1.2
    fit = fitted(model, size, card, Serving(reserve_bytes=kept))
    assert (fit.blocks, fit.tokens) == (2588, 2587 * 16)
    assert fitted(model, size, card, Serving()).blocks == pytest.approx(2588, rel=0.2)


@pytest.mark.parametrize(
    ("config", "bytes_per_token"),
    [(LLAMA_3_8B, 131_072), (LLAMA_3_70B, 327_680), (QWEN3_8B, 147_456), (DEEPSEEK_V3, 70_272)],
)
def test_blocks_are_what_the_bytes_a_token_come_to(config: dict[str, Any], bytes_per_token: int) -> None:
    given_bytes = 10 * GIB
    assert blocks_in(given_bytes, kv_model(config), Serving()) == given_bytes // (16 * bytes_per_token)


def test_gpus_divide_heads_and_stages_layers_but_a_latent_vector_stays_whole() -> None:
    llama, latent = kv_model(LLAMA_3_70B), kv_model(DEEPSEEK_V3)
    one = Serving(kv_cache_bytes=GIB)
    alone = blocks_in(GIB, llama, one)
    assert blocks_in(GIB, llama, Serving(tensor_parallel=4)) == pytest.approx(4 * alone, abs=4)
    assert blocks_in(GIB, llama, Serving(pipeline_parallel=2)) == pytest.approx(2 * alone, abs=2)
    assert blocks_in(GIB, latent, Serving(tensor_parallel=8)) == blocks_in(GIB, latent, one)


def test_windows_let_more_sequences_in() -> None:
    fit = fitted(kv_model(GEMMA_3_27B), 54e9, gpu_by_name("h200"), Serving())
    whole = fitted(
        kv_model({**GEMMA_3_27B["text_config"], "sliding_window": None, "torch_dtype": "bfloat16"}),
        54e9,
        gpu_by_name("h200"),
        Serving(),
    )
    assert fit.sequences(32_768) > 3 * whole.sequences(32_768)


def test_a_tail_is_half_a_block_and_nothing_where_blocks_are_one_token() -> None:
    model = kv_model(LLAMA_3_8B)
    assert tail(model, 1, 1000).bytes == 0
    assert tail(model, 16, 1000).tokens == 7.5
    assert tail(model, 256, 1000).ratio == pytest.approx(127.5 / 1127.5)


@given(tokens=some.integers(1, 1 << 20), faster=some.floats(1.1, 10.0))
def test_a_faster_link_or_gpu_never_makes_it_slower(tokens: int, faster: float) -> None:
    def costs(reached: Reached) -> Costs:
        return Costs(kv_model(LLAMA_3_8B), weights(LLAMA_3_8B), gpu_by_name("a100"), Serving(), reached)

    slow = costs(Reached(0.05, 0.05, 0.05)).times(tokens)
    link = costs(Reached(0.05, 0.05 * faster, 0.05)).times(tokens)
    gpu = costs(Reached(0.05 * faster, 0.05, 0.05 * faster)).times(tokens)
    assert link.swap_seconds < slow.swap_seconds
    assert gpu.recompute_seconds < slow.recompute_seconds
    assert slow.equal_link_bytes_per_second == pytest.approx(link.equal_link_bytes_per_second)


def test_where_the_other_way_becomes_faster() -> None:
    """On a slow link reading the weights decides for short ones, the copy's bytes in between, attention for long."""
    costs = Costs(
        kv_model(LLAMA_3_8B), weights(LLAMA_3_8B), gpu_by_name("h100"), Serving(), Reached(link=0.12)
    )
    found = changes(costs, 1 << 20)
    assert len(found) == 2
    first, second = found
    ways = [costs.times(tokens).swap_is_faster for tokens in (first - 1, first, second - 1, second)]
    assert ways == [True, False, False, True]
    for tokens in found:
        times = costs.times(tokens)
        assert times.swap_seconds == pytest.approx(times.recompute_seconds, rel=0.02)


def test_what_a_window_covers_is_all_that_is_copied() -> None:
    windowed = kv_model({**LLAMA_3_8B, "sliding_window": 1024})
    assert windowed.kinds == (KvLayers(32, 4096, 8, 1024),)
    costs = Costs(windowed, weights(LLAMA_3_8B), gpu_by_name("h100"), Serving(), Reached())
    assert costs.times(4096).swap_seconds == costs.times(1024).swap_seconds


@pytest.mark.parametrize(
    ("serving", "told"),
    [
        (Serving(reserve_bytes=60 * GIB), "larger than 1 x NVIDIA H100"),
        (Serving(tensor_parallel=3), "8 KV heads can't be divided over 3 GPUs"),
        (Serving(kv_cache_bytes=3 << 20), "hold 1 blocks"),
    ],
)
def test_what_does_not_fit_is_said_with_its_numbers(serving: Serving, told: str) -> None:
    with pytest.raises(CapacityError, match=told):
        fitted(kv_model(LLAMA_3_8B), weights(LLAMA_3_8B).bytes, gpu_by_name("h100"), serving)


def test_the_command_says_all_and_what_it_assumed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_3_8B))
    asked = [str(tmp_path), "--gpu", "h100", "--gpu", "rtx-4090", "--link-reached", "0.12"]
    shown = CliRunner().invoke(plan_command, asked)
    assert shown.exit_code == 0, shown.output
    for words in ("131,072 bytes of KV cache a token", "computing anew from", "an estimate from the config"):
        assert words in shown.output
    told = json.loads(CliRunner().invoke(plan_command, [*asked, "--json"]).output)
    h100, card = told["gpus"]
    assert h100["num_gpu_blocks"] == 28_019
    assert h100["usable_blocks"] == 28_018
    assert card["sequences"][-1] == {"tokens": 65_536, "sequences": 0}
    assert len(h100["break_even_tokens"]) == 2


def test_a_model_is_called_by_its_folder_or_by_a_file_that_has_a_name(tmp_path: Path) -> None:
    for file in ("config.json", "llama.json"):
        (tmp_path / file).write_text(json.dumps(LLAMA_3_8B))
        told = json.loads(
            CliRunner().invoke(plan_command, [str(tmp_path / file), "--gpu", "h100", "--json"]).output
        )
        assert told["model"] == ("llama" if file == "llama.json" else tmp_path.name)


def test_weights_packed_in_a_way_that_is_not_known_are_as_large_as_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(PACKED))
    asked = [str(tmp_path), "--gpu", "h100", "--json", "--weight-gib", "6"]
    found = CliRunner().invoke(plan_command, asked)
    assert found.exit_code == 0, found.output
    assert json.loads(found.output)["weights"]["bytes"] == 6 * GIB


def test_weights_beside_the_config_are_taken_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_3_8B))
    asked = [str(tmp_path), "--gpu", "h100", "--json"]
    (tmp_path / "model-1.safetensors").write_bytes(b"x" * 1000)
    assert json.loads(CliRunner().invoke(plan_command, asked).output)["weights"]["bytes"] == 1000
    index = {"metadata": {"total_size": 16_060_522_496}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert json.loads(CliRunner().invoke(plan_command, asked).output)["weights"]["bytes"] == 16_060_522_496


@pytest.mark.parametrize(
    ("config", "flags", "told"),
    [
        ({**LLAMA_3_8B, "num_hidden_layers": None}, (), "no positive number 'num_hidden_layers'"),
        ({**LLAMA_3_8B, "vocab_size": None}, (), "no positive number 'vocab_size'"),
        (LLAMA_3_70B, (), "the model is larger than 1 x NVIDIA H100"),
        ({**LLAMA_3_8B, "num_attention_heads": math.nan}, (), "no positive number 'num_attention_heads'"),
        ({**LLAMA_3_8B, "num_hidden_layers": math.inf}, (), "no positive number 'num_hidden_layers'"),
        (
            {**LLAMA_3_8B, "num_hidden_layers": 32.5},
            (),
            "'num_hidden_layers' is 32.5: that is no whole number",
        ),
        (
            {**LLAMA_3_8B, "num_hidden_layers": 10**30},
            (),
            "'num_hidden_layers' is 1e+30: that is no whole number",
        ),
        ({**LLAMA_3_8B, "hidden_size": 10**400}, (), "no positive number 'hidden_size'"),
        (PACKED, (), "doesn't say its bits: say --weight-dtype or --weight-gib"),
        ([], (), "is no table"),
        (LLAMA_3_8B, ("--gpu", "b17"), "no GPU 'b17' (known: h100"),
        (LLAMA_3_8B, ("--pipeline-parallel", "33"), "can't be cut into 33 stages: take 32 at most"),
        (LLAMA_3_8B, ("--reserve-gib", "nan"), "nan is no number"),
        (LLAMA_3_8B, ("--flops-reached", "nan"), "nan is no number"),
        (LLAMA_3_8B, ("--lengths", "0"), "whole numbers above 0"),
        (LLAMA_3_8B, ("--pipeline-parallel", "33"), "32 layers with a cache can't be cut into 33 stages"),
        ({**LLAMA_3_8B, "torch_dtype": None}, (), "no torch_dtype: say --kv-dtype and --weight-dtype"),
    ],
)
def test_bad_input_is_told_precisely_with_exit_code_2(
    tmp_path: Path, config: object, flags: tuple[str, ...], told: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = CliRunner().invoke(plan_command, [str(tmp_path), "--gpu", "h100", *flags])
    assert found.exit_code == 2
    assert told in found.output
