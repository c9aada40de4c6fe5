"""What fits on a GPU: KV blocks as vLLM counts them, sequences by length, tails that hold nothing.

    fit = fitted(kv_model(config), weights(config).bytes, gpu_by_name("h100"), Serving())
    fit.blocks, fit.sequences(8192)

What can't be known from files is in ``Serving`` as an assumption with its name, and is shown with the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from exporter.hardware import Gpu
from exporter.kv_layers import KvModel

GIB = 1 << 30
NULL_BLOCKS = 1
"""A block that V1 keeps for itself."""


class CapacityError(ValueError):
    """What can't be served so: one line with the numbers."""


@dataclass(frozen=True, slots=True)
class Serving:
    """How a model is served. ``utilization``: vLLM's ``gpu_memory_utilization``.

    ``reserve_bytes``: of a GPU, for activations at their peak, CUDA graphs, NCCL and the context: an assumption, which
    vLLM measures as it starts. ``kv_cache_bytes``: of a GPU, as ``--kv-cache-memory-bytes`` sets it; None: what is
    left. Raises CapacityError: what makes no sense.
    """

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    block_tokens: int = 16
    utilization: float = 0.9
    reserve_bytes: float = 2.0 * GIB
    kv_cache_bytes: float | None = None

    def __post_init__(self) -> None:
        if self.tensor_parallel < 1 or self.pipeline_parallel < 1:
            raise CapacityError(
                "a model is on one GPU at least: tensor and pipeline parallelism are 1 or more"
            )
        if self.block_tokens < 1:
            raise CapacityError(f"blocks of {self.block_tokens} tokens: take 1 or more")
        if not 0 < self.utilization <= 1:
            raise CapacityError(f"a GPU memory utilisation of {self.utilization:g}: take a share from 0 to 1")

    @property
    def gpus(self) -> int:
        """That one replica is on."""
        return self.tensor_parallel * self.pipeline_parallel


@dataclass(frozen=True, slots=True)
class Fit:
    """Bytes are of one GPU. ``blocks``: vLLM's ``num_gpu_blocks``; ``usable``: that sequences can have."""

    model: KvModel
    serving: Serving
    weight_bytes: float
    kv_bytes: float
    blocks: int

    @property
    def usable(self) -> int:
        """Without the one that V1 keeps."""
        return max(0, self.blocks - NULL_BLOCKS)

    @property
    def tokens(self) -> int:
        """Of sequences that are shorter than any window."""
        tables = sum(self.model.groups(kind) for kind in self.model.kinds)
        return self.usable // tables * self.serving.block_tokens

    def sequences(self, tokens: int) -> int:
        """That fit while each has so many tokens; prefixes that they share aren't counted."""
        return self.usable // self.model.blocks(tokens, self.serving.block_tokens)


@dataclass(frozen=True, slots=True)
class Tail:
    """Of blocks of one size: what lies empty behind a sequence's last token, as is expected of any length.

    ``bytes``: of a sequence, on all GPUs; ``ratio``: of what a sequence of that length takes.
    """

    block_tokens: int
    tokens: float
    bytes: float
    ratio: float


def fitted(model: KvModel, weight_bytes: float, gpu: Gpu, serving: Serving) -> Fit:
    """``weight_bytes``: of the whole model. Raises CapacityError: larger than the GPUs, nothing left, no such cut."""
    heads = max(kind.kv_heads for kind in model.kinds)
    tensor = serving.tensor_parallel
    if heads % tensor and tensor % heads:
        raise CapacityError(
            f"{heads} KV heads can't be divided over {tensor} GPUs: take a divisor or a multiple of {heads}"
        )
    layers = sum(kind.layers for kind in model.kinds) + model.stateful_layers
    if serving.pipeline_parallel > layers:
        raise CapacityError(
            f"{layers} layers with a cache can't be cut into {serving.pipeline_parallel} stages: take {layers} at most"
        )
    mine = weight_bytes / serving.gpus
    kv = serving.kv_cache_bytes
    if kv is None:
        budget = gpu.memory_bytes * serving.utilization
        kv = budget - mine - serving.reserve_bytes
        if kv <= 0:
            raise CapacityError(
                f"the model is larger than {serving.gpus} x {gpu.name}: of {budget / GIB:.1f} GiB on each"
                f" ({serving.utilization:g} of {gpu.memory_bytes / GIB:.1f}) weights take {mine / GIB:.1f} and the"
                f" reserve {serving.reserve_bytes / GIB:.1f}; take more GPUs, a larger one or smaller weights"
            )
    blocks = blocks_in(kv, model, serving)
    if blocks <= NULL_BLOCKS:
        raise CapacityError(
            f"{kv / GIB:.2f} GiB for the KV cache hold {blocks} blocks of {serving.block_tokens} tokens: that is none"
            " to serve with"
        )
    return Fit(model, serving, mine, kv, blocks)


def blocks_in(kv_bytes: float, model: KvModel, serving: Serving) -> int:
    """As vLLM 0.32 has it (``get_num_blocks``): whole pages of one layer, divided by the layers of a group."""
    stage = staged(model, serving.pipeline_parallel)
    layers = stage.group_layers
    page = int(stage.block_bytes_gpu(serving.block_tokens, serving.tensor_parallel) / layers)
    return int(kv_bytes // page // layers)


def staged(model: KvModel, stages: int) -> KvModel:
    """The layers of the fullest of so many stages: it decides, since all have the same blocks."""
    if stages == 1:
        return model
    kinds = tuple(
        type(kind)(-(-kind.layers // stages), kind.bytes_per_token, kind.kv_heads, kind.window_tokens)
        for kind in model.kinds
    )
    return KvModel(kinds, model.stateful_layers)


def tail(model: KvModel, block_tokens: int, tokens: int) -> Tail:
    """Half a block but half a token, in each block table that goes on growing; of a window's tables none are told."""
    empty = (block_tokens - 1) / 2
    growing = [kind for kind in model.kinds if kind.window_tokens is None or tokens < kind.window_tokens]
    wasted = empty * sum(kind.layers * kind.bytes_per_token for kind in growing)
    held = sum(
        kind.layers
        * kind.bytes_per_token
        * (tokens if kind.window_tokens is None else min(tokens, kind.window_tokens))
        for kind in model.kinds
    )
    return Tail(block_tokens, empty, wasted, wasted / (held + wasted))
