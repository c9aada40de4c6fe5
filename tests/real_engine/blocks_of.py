"""Starts an engine on a config.json, without weights, and prints what it tells of its KV cache; run by its own Python.

``python blocks_of.py FOLDER KV_BYTES BLOCK_TOKENS``: one line of JSON, the labels of ``cache_config_info``.
"""

import json
import sys

from prometheus_client import REGISTRY
from vllm import LLM


def main(folder: str, kv_bytes: int, block_tokens: int) -> None:
    """One process, nothing computed: the cache is laid out, and told of."""
    LLM(
        model=folder,
        skip_tokenizer_init=True,
        load_format="dummy",
        dtype="bfloat16",
        enforce_eager=True,
        max_model_len=1024,
        max_num_seqs=4,
        max_num_batched_tokens=1024,
        block_size=block_tokens,
        kv_cache_memory_bytes=kv_bytes,
        disable_log_stats=False,
    )
    told = next(
        sample.labels
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.name == "vllm:cache_config_info"
    )
    sys.stdout.write(f"\n{json.dumps(told)}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
