"""What vLLM's ``cache_config_info`` says of the KV cache, read with its traps in mind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from exporter.dialects.cells import number_of

IDENTITY_LABELS = frozenset(
    {
        "engine",
        "model_name",
        "pid",
        "Component",
        "NodeAddress",
        "ReplicaId",
        "SessionName",
        "Version",
        "WorkerId",
    }
)
"""Labels that say whose a series is: vLLM's own, prometheus_client's and Ray's. Not configuration."""
GIB = 1 << 30
_CAPACITY_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class CacheConfig:
    """One ``cache_config_info`` series.

    ``known`` are the labels with a value, sorted; ``"None"`` is no value. ``names`` are all label
    names, valued or not; ``numbers`` the values that read as finite numbers.
    """

    known: tuple[tuple[str, str], ...]
    names: frozenset[str]
    numbers: Mapping[str, float]

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> CacheConfig:
        """Reads the labels of one series. A value that is no number costs that number only."""
        own = {name: value for name, value in labels.items() if name not in IDENTITY_LABELS}
        known = {name: value for name, value in sorted(own.items()) if value not in ("", "None")}
        numbers = {name: number for name, value in known.items() if (number := number_of(value)) is not None}
        return cls(tuple(known.items()), frozenset(own), MappingProxyType(numbers))


class Geometry(NamedTuple):
    """The KV cache of one rank.

    ``blocks`` usable blocks and ``pool_blocks`` all of them; ``block_tokens`` tokens a block of the
    (full attention) group holds; ``group_tokens`` that of every KV group, where all are known;
    ``capacity_tokens`` what the usable blocks hold, as the engine reckons it; ``doubtful`` that the
    block size it tells can't be right or can't be told from a wrong one.
    """

    blocks: float | None = None
    pool_blocks: float | None = None
    block_tokens: float | None = None
    group_tokens: tuple[float, ...] = ()
    capacity_tokens: float | None = None
    doubtful: bool = False


def geometry(config: CacheConfig, *, engines: int, null_block: bool) -> Geometry:
    """The geometry of one of the ``engines`` ranks that one process serves.

    ``num_gpu_blocks`` is the sum over those ranks, repeated on each. ``kv_cache_size_tokens`` (0.24)
    is one rank's, with every KV group of a hybrid model reckoned in, so it proves or refutes the
    block size: a model with one group holds what its blocks hold. ``null_block``: one block of the
    pool is never lent and is not in the usage gauge.
    """
    total = config.numbers.get("num_gpu_blocks") or None
    effective = config.numbers.get("effective_attention_block_size") or None  # 0.31, with DCP
    size = effective or config.numbers.get("block_size") or None
    tokens = config.numbers.get("kv_cache_size_tokens") or None
    pool = _rank_blocks(total, engines, size, tokens)
    usable = pool - 1 if pool is not None and null_block else pool
    if usable is not None and usable <= 0:
        usable = None
    # the engine's figure counts the null block as well
    capacity = tokens * usable / pool if tokens and usable and pool else tokens
    plain = Geometry(usable, pool, capacity_tokens=capacity)
    if size is None:
        return plain
    one_group = _is_one_group(config, pool, size, tokens)
    if one_group or (one_group is None and not _is_mamba(config)):
        return plain._replace(block_tokens=size, group_tokens=(size,))
    if effective:
        return plain._replace(block_tokens=size)
    return plain._replace(doubtful=True)


def _rank_blocks(total: float | None, engines: int, size: float | None, tokens: float | None) -> float | None:
    """All blocks of one rank, of a ``total`` that is their sum unless the capacity refutes it."""
    if total is None or engines <= 1:
        return total
    share = total / engines
    if size and tokens and share * size < tokens * (1 - _CAPACITY_TOLERANCE) and total * size >= tokens:
        return total  # a share could not hold what the rank says it holds: no sum was made
    return share


def _is_one_group(
    config: CacheConfig, blocks: float | None, size: float, tokens: float | None
) -> bool | None:
    """Whether the capacity is that of one KV group of blocks of ``size`` tokens; None: not told.

    The engine reckons capacity as concurrency at the longest request, times that length, so a last
    block that the longest request leaves part empty makes it smaller than blocks x size.
    """
    if blocks is None or tokens is None:
        return None
    per_block = size
    concurrency = config.numbers.get("kv_cache_max_concurrency")
    if concurrency:
        longest = max(round(tokens / concurrency), 1)
        per_block = longest / math.ceil(longest / size)
    return math.isclose(blocks * per_block, tokens, rel_tol=_CAPACITY_TOLERANCE)


def _is_mamba(config: CacheConfig) -> bool:
    """A hybrid Mamba model, whose front end may keep a block size the engine has long raised (#42966)."""
    return bool(config.numbers.get("mamba_block_size") or config.numbers.get("mamba_page_size_padded"))
