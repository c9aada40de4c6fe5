"""Turns what one vLLM rank's series read into the fields of a ``RankSample``."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

from exporter.dialects.vllm_config import GIB, CacheConfig, Geometry, geometry
from exporter.dialects.vllm_names import (
    BY_FIELD,
    HISTOGRAM_PARTS,
    NULL_BLOCK_LABEL,
    NULL_BLOCK_STEM,
    OFFLOAD_FIELDS,
    V1_STEMS,
    Kind,
    Name,
)
from exporter.sample import Histogram

USAGE_ABOVE_1 = "usage_above_1"
BLOCK_SIZE_UNKNOWN = "block_size_unknown"

V0, V1 = "v0", "v1"

Cells = Mapping[Name, Mapping[Any, float]]
"""Readings by name, then by what tells those of one name apart (see ``vllm.Slot``)."""
Facts = dict[str, Any]
"""Fields by their names in ``RankSample``; those that aren't known are left out."""


def rank_facts(
    cells: Cells, config: CacheConfig | None, *, engines: int, labelled: bool, notes: set[str]
) -> Facts:
    """All that is known of one rank of ``engines`` in its process; oddities are added to ``notes``.

    ``labelled``: the endpoint's series have an ``engine`` label, which V0 never had.
    """
    facts: Facts = {}
    for field, names in BY_FIELD.items():
        for name in names:
            value = _value(name, cells, notes)
            if value is not None:
                facts[field] = value
                break
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


def one(cells: Cells, name: Name) -> float | None:
    """The reading of a name that has a single one."""
    return cells[name].get(None) if name in cells else None


def told_by(cells: Cells, name: Name) -> tuple[tuple[str, float], ...] | None:
    """Readings by their label's value, sorted, whatever the order of the text."""
    return tuple(sorted(cells[name].items())) if name in cells else None


def _value(name: Name, cells: Cells, notes: set[str]) -> object:
    if name.kind is Kind.HISTOGRAM:
        return _histogram(name, cells)
    if name not in cells:
        return None
    if name.kind is Kind.INFO:
        return max(cells[name])
    if name.by is not None:
        return told_by(cells, name)
    value = one(cells, name)
    if name.kind is Kind.RATIO and value is not None and value > 1:
        # V0 adds the gauges of its processes up
        notes.add(USAGE_ABOVE_1)
        return 1.0
    return value


def _histogram(buckets: Name, cells: Cells) -> Histogram | None:
    """The bounds are the text's: since 0.32 users choose them.

    Without buckets (some re-exporters leave them out) the count alone, which still has a mean.
    """
    stem = buckets.stem
    total = one(cells, HISTOGRAM_PARTS[stem, "_sum"])
    if buckets in cells:
        by_bound = cells[buckets]
        bounds, in_order = _rising(tuple(by_bound))
        counts = tuple(by_bound.values()) if in_order else tuple(by_bound[bound] for bound in bounds)
        if bounds[-1] == math.inf:
            return Histogram(bounds, counts, total)
    else:
        bounds, counts = (), ()
    count = one(cells, HISTOGRAM_PARTS[stem, "_count"])
    if count is not None:
        return Histogram((*bounds, math.inf), (*counts, count), total)
    return Histogram(bounds, counts, total) if counts else None


@functools.lru_cache(maxsize=1024)
def _rising(bounds: tuple[float, ...]) -> tuple[tuple[float, ...], bool]:
    """The bounds in order, the same tuple for the same bounds, and whether they came that way."""
    rising = tuple(sorted(bounds))
    return rising, rising == bounds


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
