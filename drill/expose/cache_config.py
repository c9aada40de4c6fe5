"""The labels of ``vllm:cache_config_info``: all of an engine's cache configuration, as each release spells it.

Which labels came and went is from the packages of the releases; what stands in those that the drill doesn't speak of is
what an engine on NVIDIA GPUs has by default.
"""

from __future__ import annotations

from typing import NamedTuple

from drill.expose.release import Release
from drill.serving.config import EngineConfig, Generation

GIB = float(1 << 30)
NONE = "None"


class _Label(NamedTuple):
    name: str
    default: str = NONE
    since: tuple[int, ...] = ()
    until: tuple[int, ...] | None = None


_LABELS = (
    _Label("_block_size_resolved", "True", (0, 18, 1)),
    _Label("block_size"),
    _Label("cache_dtype", "auto"),
    _Label("cache_hit_alignment_tokens", since=(0, 32)),
    _Label("calculate_kv_scales", "False", (0, 7, 3), (0, 28)),
    _Label("cpu_kvcache_space_bytes", since=(0, 9, 2), until=(0, 20, 2)),
    _Label("cpu_offload_gb", "0", (), (0, 18, 1)),
    _Label("cpu_offload_params", "set()", (0, 17, 1), (0, 18, 1)),
    _Label("effective_attention_block_size", since=(0, 31)),
    _Label("enable_mamba_shared_prefix_checkpoint", "False", (0, 32)),
    _Label("enable_prefix_caching"),
    _Label("gpu_memory_utilization"),
    _Label("hash_block_size", since=(0, 20, 2), until=(0, 26)),
    _Label("hash_block_size", since=(0, 32)),
    _Label("is_attention_free", "False", (0, 6, 6)),
    _Label("kv_cache_dtype_skip_layers", "[]", (0, 19, 1)),
    _Label("kv_cache_layout", since=(0, 29)),
    _Label("kv_cache_max_concurrency", since=(0, 24)),
    _Label("kv_cache_memory_bytes", since=(0, 10, 2)),
    _Label("kv_cache_size_tokens", since=(0, 24)),
    _Label("kv_offloading_backend", "native", (0, 11, 2)),
    _Label("kv_offloading_size", since=(0, 11, 2)),
    _Label("kv_sharing_fast_prefill", "False", (0, 10, 1)),
    _Label("mamba_block_size", since=(0, 11, 2)),
    _Label("mamba_cache_dtype", "auto", (0, 10, 1)),
    _Label("mamba_cache_mode", "none", (0, 16)),
    _Label("mamba_page_size_padded", since=(0, 10)),
    _Label("mamba_ssm_cache_dtype", "auto", (0, 10, 1), (0, 32)),
    _Label("mamba_ssm_cache_dtype", "float32", (0, 32)),
    _Label("num_cpu_blocks"),
    _Label("num_gpu_blocks"),
    _Label("num_gpu_blocks_override"),
    _Label("prefix_cache_retention_interval", "0", (0, 29)),
    _Label("prefix_caching_hash_algo", "builtin", (0, 8, 5), (0, 11)),
    _Label("prefix_caching_hash_algo", "sha256", (0, 11)),
    _Label("prefix_match_unit", since=(0, 26)),
    _Label("replayssm_buffer_len", "16", (0, 27, 1)),
    _Label("simple_cpu_offload_num_blocks", since=(0, 33)),
    _Label("skip_page_size_padded", since=(0, 25, 1)),
    _Label("sliding_window"),
    _Label("swa_bounded_replay", "True", (0, 31)),
    _Label("swap_space", "4", (0, 8, 5), (0, 18, 1)),
    _Label("swap_space_bytes", "4294967296", (), (0, 11, 2)),
    _Label("use_kda_recoverssm", "False", (0, 29)),
    _Label("use_replayssm", "False", (0, 27, 1)),
    _Label("user_specified_block_size", "True", (0, 18, 1)),
    _Label("user_specified_mamba_block_size", "False", (0, 20, 2), (0, 31)),
)


def cache_config(config: EngineConfig, release: Release, ranks: int = 1) -> dict[str, str]:
    """Labels by name, those that the release has. ``ranks``: data-parallel engines behind one front end.

    The front end shows the sum of the ranks' blocks as everybody's (V1).
    """
    told = _told(config, release, ranks)
    return {
        label.name: told.get(label.name, label.default)
        for label in _LABELS
        if release.in_range(label.since, label.until)
    }


def _told(config: EngineConfig, release: Release, ranks: int) -> dict[str, str]:
    blocks = config.total_blocks
    told = {
        "block_size": str(config.block_tokens),
        "effective_attention_block_size": str(config.block_tokens),
        "enable_prefix_caching": str(config.prefix_caching),
        "gpu_memory_utilization": str(config.memory_utilization_ratio),
        "num_gpu_blocks": str(blocks * ranks),
        "num_gpu_blocks_override": NONE if config.gpu_blocks is None else str(config.gpu_blocks),
        "kv_cache_size_tokens": str(blocks * config.block_tokens),
        "kv_cache_max_concurrency": str(blocks / -(-config.max_model_tokens // config.block_tokens)),
    }
    if config.generation is Generation.V0:
        told["num_cpu_blocks"] = str(config.host_blocks)
        told["swap_space"] = str(config.swap_bytes_gpu / GIB)
        told["swap_space_bytes"] = str(config.swap_bytes_gpu)
        if not config.prefix_caching:
            told["enable_prefix_caching"] = NONE
        return told
    if not release.in_range((0, 9), None):
        told["num_gpu_blocks"] = NONE  # it was the engine core's alone
    if config.offload_bytes:
        told["kv_offloading_size"] = str(config.offload_bytes / GIB)
    return told
