"""How one engine is set up: model, GPUs, scheduler. Impossible set-ups are refused here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from drill.serving.calibration import calibration_of
from drill.serving.host_copies import PAYLOAD_RATIO, CopyModel, PageCopies, PieceCopies
from drill.serving.models import Model
from drill.serving.request import PreemptionMode
from drill.serving.roofline import Roofline
from exporter.hardware import Gpu


class EngineConfigError(ValueError):
    """A set-up that can't be: what is wrong, and what would do."""


class Generation(StrEnum):
    """Of vLLM's engine."""

    V0 = "v0"
    V1 = "v1"


class Policy(StrEnum):
    """Who goes first."""

    FCFS = "fcfs"
    PRIORITY = "priority"


class Copies(StrEnum):
    """How swapped blocks are copied."""

    PIECES = "pieces"
    PAGES = "pages"


ACTIVATION_BYTES_RATIO = 0.04
"""Of a GPU's memory, left for activations, CUDA graphs and the context: 70B on 8 H100 leaves about 50 GB of 80
for KV at 0.9, as public vLLM logs show; the RTX 4090 run had 2,588 blocks where 0.06 would give 2,550."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """One replica of an engine.

    ``gpu_blocks`` is what the engine calls ``num_gpu_blocks``; None: as many as fit. ``max_batched_tokens``
    and ``max_sequences`` limit an iteration; V0 that doesn't chunk ends prompts longer than the former.
    ``preemption``: V0's ``--preemption-mode``, None its default. ``swap_bytes_gpu``: V0's swap space on
    each GPU. ``offload_bytes``: V1's host tier, of all GPUs together; 0 = none. ``reserve_whole_prompt``:
    vLLM 0.19 and later let in only whom the free blocks hold entirely. ``watermark_ratio`` of the blocks
    stays free when somebody is let in: None is 0.01 on V0 and 0 on V1. ``link_sharers``: GPUs behind one
    uplink to the host, all copying at once.
    """

    model: Model
    gpu: Gpu
    generation: Generation = Generation.V1
    tensor_parallel: int = 1
    expert_parallel: int = 1
    block_tokens: int = 16
    gpu_blocks: int | None = None
    memory_utilization_ratio: float = 0.9
    max_batched_tokens: int = 8192
    max_sequences: int = 256
    max_model_tokens: int = 131072
    chunked_prefill: bool = True
    prefix_caching: bool = True
    long_prefill_tokens: int = 0
    reserve_whole_prompt: bool = True
    watermark_ratio: float | None = None
    policy: Policy = Policy.FCFS
    preemption: PreemptionMode | None = None
    swap_bytes_gpu: float = 4 * 2**30
    offload_bytes: float = 0.0
    copies: Copies = Copies.PIECES
    nvlink: bool = True
    link_sharers: int = 1

    def __post_init__(self) -> None:
        positive = (
            "tensor_parallel",
            "expert_parallel",
            "block_tokens",
            "max_batched_tokens",
            "max_sequences",
        )
        for name in (*positive, "max_model_tokens", "link_sharers"):
            if getattr(self, name) < 1:
                raise EngineConfigError(f"{name} is {getattr(self, name)}: it must be at least 1")
        if self.model.heads % self.tensor_parallel:
            raise EngineConfigError(
                f"tensor_parallel {self.tensor_parallel} doesn't divide the {self.model.heads} heads of "
                f"{self.model.name}"
            )
        if self.generation is Generation.V1 and self.preemption is PreemptionMode.SWAP:
            raise EngineConfigError("V1 never swaps: leave preemption out, or take generation v0")
        if self.generation is Generation.V0 and (self.offload_bytes or self.policy is Policy.PRIORITY):
            raise EngineConfigError("offload_bytes and priority are V1's: take generation v1")
        if self.usable_blocks < 1:
            weights = self.model.weight_bytes / self._weight_parts / 1e9
            room = self.gpu.memory_bytes * self.memory_utilization_ratio / 1e9
            raise EngineConfigError(
                f"{self.model.name} has {weights:.1f} GB of weights for each of {self._weight_parts} {self.gpu.name}, "
                f"which leaves no memory for KV blocks in {room:.1f} GB: take more GPUs (tensor_parallel) or a "
                "smaller model"
            )

        needed = self.model.weight_bytes / self._weight_parts + self.total_blocks * self.block_bytes_gpu
        if needed > self.gpu.memory_bytes:
            raise EngineConfigError(
                f"{self.total_blocks} blocks and the weights of {self.model.name} take {needed / 1e9:.1f} GB of each "
                f"{self.gpu.name}, which has {self.gpu.memory_bytes / 1e9:.1f} GB: take fewer blocks or more GPUs"
            )

    @property
    def _weight_parts(self) -> int:
        return self.tensor_parallel * self.expert_parallel

    @property
    def block_bytes_gpu(self) -> float:
        """One block on one GPU."""
        return self.block_tokens * self.model.kv.bytes_per_token_gpu(self.tensor_parallel, 1)

    @property
    def block_bytes(self) -> float:
        """One block on all GPUs, copies of repeated heads counted."""
        return self.block_bytes_gpu * self.tensor_parallel

    @property
    def total_blocks(self) -> int:
        """What the engine exposes as ``num_gpu_blocks``."""
        if self.gpu_blocks is not None:
            return self.gpu_blocks
        total = float(self.gpu.memory_bytes)
        weights = self.model.weight_bytes / self._weight_parts
        room = total * (self.memory_utilization_ratio - ACTIVATION_BYTES_RATIO) - weights
        return max(0, int(room / self.block_bytes_gpu))

    @property
    def usable_blocks(self) -> int:
        """Those that sequences can have: V1 keeps one."""
        return self.total_blocks - (1 if self.generation is Generation.V1 else 0)

    @property
    def host_blocks(self) -> int:
        """Room of V0's swap pool."""
        return int(self.swap_bytes_gpu / self.block_bytes_gpu) if self.generation is Generation.V0 else 0

    @property
    def watermark_blocks(self) -> int:
        """Blocks that stay free when somebody is let in."""
        ratio = self.watermark_ratio
        if ratio is None:
            ratio = 0.01 if self.generation is Generation.V0 else 0.0
        return math.floor(ratio * self.total_blocks)

    @property
    def has_nvlink(self) -> bool:
        """Whether its GPUs talk over NVLink."""
        return self.nvlink and self.gpu.nvlink_bytes_per_second > 0

    @property
    def host_link_bytes_per_second(self) -> float:
        """What one GPU gets of the link to its host, in one direction, headers included."""
        return self.gpu.pcie_bytes_per_second / self.link_sharers

    @property
    def copy_model(self) -> CopyModel:
        """How swapped blocks travel."""
        if self.copies is Copies.PAGES:
            return PageCopies(self.block_bytes_gpu, self.host_link_bytes_per_second)
        return PieceCopies(self.block_bytes_gpu, self.model.layers, self.host_link_bytes_per_second)

    def roofline(self) -> Roofline:
        """The timer that follows from model and GPUs. Raises EngineConfigError for a GPU nobody calibrated."""
        return Roofline(
            self.model,
            self.gpu,
            calibration_of(self.gpu, v0=self.generation is Generation.V0),
            self.copy_model,
            self.tensor_parallel,
            self.expert_parallel,
            self.has_nvlink,
        )

    @property
    def offload_bytes_per_second(self) -> float:
        """Payload of V1's transfers in one direction of one GPU's link."""
        return self.host_link_bytes_per_second * PAYLOAD_RATIO
