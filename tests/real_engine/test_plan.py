"""Blocks as ``thrashold plan`` counts them, beside those that a real vLLM lays out, for tiny models of other geometry.

Without weights and without a request: an engine is started on each config.json, one after the other, and says in
``cache_config_info`` what it made of the bytes that it was given.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from analysis.capacity import Serving, blocks_in
from exporter.kv_layers import kv_model
from tests.real_engine import install

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

_PROGRAM = Path(__file__).with_name("blocks_of.py")
KV_BYTES = 5_000_000
"""No whole number of blocks of any of them."""
BLOCK_TOKENS = 32
_SHARED: dict[str, Any] = {
    "vocab_size": 2048,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "dtype": "bfloat16",
}
GROUPED = {
    **_SHARED,
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu",
}
LATENT = {
    **_SHARED,
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "num_hidden_layers": 3,
    "num_key_value_heads": 4,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "hidden_act": "silu",
    "moe_intermediate_size": 64,
    "n_routed_experts": 2,
    "n_shared_experts": 1,
    "num_experts_per_tok": 1,
    "first_k_dense_replace": 3,
    "rope_theta": 10000.0,
}
WINDOWED = {
    **_SHARED,
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "num_hidden_layers": 8,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 32,
    "rope_theta": 10000.0,
    "rope_local_base_freq": 10000.0,
    "sliding_window": 64,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"] * 2,
}


@pytest.fixture(scope="module")
def engine() -> install.Installed:
    try:
        return install.ensure()
    except install.UnavailableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have the real engine: {error}", pytrace=False)
        pytest.skip(f"no real engine: {error}")


@pytest.mark.parametrize("config", [GROUPED, LATENT, WINDOWED], ids=["grouped", "latent", "windowed"])
def test_the_engine_lays_out_as_many_blocks(
    engine: install.Installed, tmp_path: Path, config: dict[str, Any]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    told = _told(engine, tmp_path)
    assert told["kv_cache_memory_bytes"] == str(KV_BYTES)
    # latent attention on a CPU has blocks of 16, whatever is asked for
    serving = Serving(block_tokens=int(told["block_size"]))
    assert int(told["num_gpu_blocks"]) == blocks_in(KV_BYTES, kv_model(config), serving)


def _told(engine: install.Installed, folder: Path) -> dict[str, str]:
    """What the engine says; the end of what it wrote where it doesn't start."""
    caches = engine.venv.parent / "cache"
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(caches / "hf"),
        "VLLM_CACHE_ROOT": str(caches / "vllm"),
        "VLLM_CONFIG_ROOT": str(caches / "vllm-config"),
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_PLUGINS": "",
    }
    done = subprocess.run(
        [engine.python, _PROGRAM, folder, str(KV_BYTES), str(BLOCK_TOKENS)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]
    told: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return told
