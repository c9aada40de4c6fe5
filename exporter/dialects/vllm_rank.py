"""Turns what one vLLM rank's series read into the fields of a ``RankSample``."""

from __future__ import annotations

from exporter.dialects.cells import Cells, Facts, facts_of
from exporter.dialects.vllm_config import GIB, CacheConfig, Geometry, geometry
from exporter.dialects.vllm_names import NULL_BLOCK_LABEL, NULL_BLOCK_STEM, OFFLOAD_FIELDS, TABLE, V1_STEMS

BLOCK_SIZE_UNKNOWN = "block_size_unknown"

V0, V1 = "v0", "v1"


def rank_facts(
    cells: Cells, config: CacheConfig | None, *, engines: int, labelled: bool, notes: set[str]
) -> Facts:
    """All that is known of one rank of ``engines`` in its process; oddities are added to ``notes``.

    ``labelled``: the endpoint's series have an ``engine`` label, which V0 never had.
    """
    facts = facts_of(TABLE, cells, notes)
    stems = {name.stem for name in cells}
    is_v1 = labelled or not stems.isdisjoint(V1_STEMS)
    facts["generation"] = V1 if is_v1 else V0
    offload = not OFFLOAD_FIELDS.isdisjoint(facts)
    if config is not None:
        null_block = is_v1 and (NULL_BLOCK_STEM in stems or NULL_BLOCK_LABEL in config.names)
        shape = geometry(config, engines=engines, null_block=null_block)
        facts.update(_shape_facts(shape))
        if not config.numbers.get("num_gpu_blocks_override"):  # else the bytes don't pay for the blocks
            facts["kv_pool_bytes"] = config.numbers.get(NULL_BLOCK_LABEL) or None
        if shape.doubtful:
            notes.add(BLOCK_SIZE_UNKNOWN)
        if is_v1:
            offload |= _add_offload(facts, config)
        else:
            _add_swap_pool(facts, config)
    if offload:
        facts["swap_mode"] = "offload"
    return facts


def _shape_facts(shape: Geometry) -> Facts:
    return {
        "blocks": shape.blocks,
        "pool_blocks": shape.pool_blocks,
        "block_tokens": shape.block_tokens,
        "block_group_tokens": shape.group_tokens,
        "kv_capacity_tokens": shape.capacity_tokens,
    }


def _add_offload(facts: Facts, config: CacheConfig) -> bool:
    """V1: ``swap_space`` means nothing; ``kv_offloading_size`` (0.11.2) is one engine's, over its GPUs."""
    gib = config.numbers.get("kv_offloading_size")
    # LMCache is not told the size
    if gib and dict(config.known).get("kv_offloading_backend") == "native":
        facts.setdefault("swap_tier_bytes", gib * GIB)
    blocks = config.numbers.get("simple_cpu_offload_num_blocks")  # 0.33
    if blocks:
        facts.setdefault("swap_tier_blocks", blocks)
    return bool(gib or blocks)


def _add_swap_pool(facts: Facts, config: CacheConfig) -> None:
    """V0: a pool of ``num_cpu_blocks``, ``swap_space_bytes`` on each GPU."""
    blocks = config.numbers.get("num_cpu_blocks")
    if blocks is None:
        return
    facts["swap_tier_blocks"] = blocks
    facts["swap_tier_bytes"] = config.numbers.get("swap_space_bytes") if blocks else 0.0
    if blocks:
        facts["swap_mode"] = "swap"
