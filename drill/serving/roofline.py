"""The time of an iteration from FLOPs, memory and links: a roofline of one GPU, and collectives between them.

The shape is the usual one of the field (Williams, Waterman, Patterson: Roofline, 2009; for serving: Agrawal et
al.: Vidur, MLSys 2024; Cho et al.: LLMServingSim, IISWC 2024). Each constant is a physical quantity of its
own, set once for a device in ``calibration.py``, never for a run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from drill.serving.calibration import Calibration
from drill.serving.host_copies import CopyModel
from drill.serving.models import Model
from drill.serving.step_time import Batch, StepCost
from exporter.hardware import Gpu

_LOGIT_PASSES_BYTES = 10.0
"""Bytes moved for each logit of each sampled sequence: 32-bit values, written once, read one and a half times
by the sampler. 310 us for 256 sequences of 128,256 on an RTX 4090, 164 us on an RTX PRO 6000 (kernel profiles
of LLMServingSim, per_sequence.csv)."""


@dataclass(frozen=True)
class Roofline:
    """One replica: ``tensor_parallel`` GPUs hold a model, experts spread over ``expert_parallel`` of them."""

    model: Model
    gpu: Gpu
    calibration: Calibration
    copies: CopyModel
    tensor_parallel: int = 1
    expert_parallel: int = 1
    nvlink: bool = False

    def cost(self, batch: Batch, copying_seconds: float) -> StepCost:
        """See StepTimer."""
        known = self.calibration
        tokens = batch.prefill_tokens + batch.decodes
        if tokens == 0 and not (batch.swap_in_blocks or batch.swap_out_blocks):
            return StepCost(known.iteration_seconds)
        streamed, arithmetic = self.linear_work(tokens, batch.samples)
        bandwidth = self.gpu.memory_bytes_per_second
        linear = self.linear_seconds(streamed, arithmetic)
        kv_bytes = self._kv_token_bytes * (batch.decode_context + batch.prefill_context)
        passing = self._activation_bytes * tokens + _LOGIT_PASSES_BYTES * batch.samples * (
            self.model.vocabulary / self.tensor_parallel
        )
        attention = self._decode_attention(batch) + self._pair_seconds * batch.prefill_pairs
        busy = linear + attention + passing / bandwidth + self.model.layers * known.layer_seconds
        collective_bytes, collective = self._collectives(tokens, copying_seconds)
        copy = self.copies.seconds(batch.swap_in_blocks, batch.swap_out_blocks)
        seconds = (
            busy
            + collective
            + copy
            + known.iteration_seconds
            + known.sequence_seconds * (batch.decodes + batch.prefills)
        )
        return StepCost(
            seconds,
            busy,
            streamed + kv_bytes + passing,
            collective_bytes,
            not self.nvlink,
            copy,
            collective,
            self.copies.bytes(batch.swap_in_blocks),
            self.copies.bytes(batch.swap_out_blocks),
        )

    def rise(self, batch: Batch) -> float:
        """See StepTimer."""
        grown = Batch(
            prefill_tokens=batch.prefill_tokens, decodes=batch.decodes, decode_context=batch.decodes
        )
        return self._decode_attention(grown) + self._pair_seconds * batch.prefill_pairs_rise

    def linear_work(self, tokens: int, samples: int) -> tuple[float, float]:
        """Bytes of weights and FLOPs of one GPU, of all matrix products."""
        model = self.model
        attention = model.attention_values / self.tensor_parallel
        if model.experts:
            # tokens of all replicas that share the experts meet there; the others are taken to be as busy
            gathered = tokens * self.expert_parallel
            used = model.experts * (1.0 - (1.0 - model.active_experts / model.experts) ** gathered)
            parts = self.expert_parallel * self.tensor_parallel
            weights = used * model.feed_forward_values / parts
            products = model.active_experts * model.feed_forward_values * gathered / parts
        else:
            weights = model.feed_forward_values / self.tensor_parallel
            products = weights * tokens
        head = model.head_values / self.tensor_parallel
        streamed = (model.layers * (attention + weights) + (head if samples else 0.0)) * model.value_bytes
        return streamed, 2.0 * (model.layers * (attention * tokens + products) + head * samples)

    def linear_seconds(self, streamed: float, flops: float) -> float:
        """What the matrix products take.

        Neither hides the other fully: measured ones lie on the root of the sum of squares.
        """
        known = self.calibration
        memory = streamed / (self.gpu.memory_bytes_per_second * known.weight_bandwidth)
        return math.hypot(memory, flops / (self.gpu.flops_16bit * known.arithmetic))

    @cached_property
    def _kv_token_bytes(self) -> float:
        return self.model.kv.bytes_per_token_gpu(self.tensor_parallel, 1)

    @cached_property
    def _activation_bytes(self) -> float:
        """Read and written a token by what lies between the matrix products: norms, rotation, gate, residuals."""
        model = self.model
        width = 3 * model.feed_forward * max(1, model.active_experts)
        width += model.head_size * (model.heads + 2 * model.kv_heads)
        return model.layers * 2.0 * (width / self.tensor_parallel + 4 * model.hidden)

    @cached_property
    def _pair_seconds(self) -> float:
        """A prefill token attending to one other: two products of head size, in each head."""
        model = self.model
        flops = 4.0 * model.layers * model.heads * model.head_size / self.tensor_parallel
        return flops / (self.gpu.flops_16bit * self.calibration.attention_arithmetic)

    def _decode_attention(self, batch: Batch) -> float:
        seconds = (
            self._kv_token_bytes
            * batch.decode_context
            / (self.gpu.memory_bytes_per_second * self.calibration.kv_bandwidth)
        )
        return seconds * self.calibration.mixed_attention if batch.prefill_tokens else seconds

    def _collectives(self, tokens: int, copying_seconds: float) -> tuple[float, float]:
        """Bytes in each direction of one GPU, and seconds: two all-reduces a layer, or the experts' exchange.

        A ring sends 2 (n - 1)/n of the data over each link (Patarasuk, Yuan: Bandwidth optimal all-reduce, 2009).
        Without NVLink it shares the link with host copies, half and half, for as long as both last.
        """
        known, model = self.calibration, self.model
        peers = max(self.tensor_parallel, self.expert_parallel)
        if peers == 1:
            return 0.0, 0.0
        data = tokens * model.hidden * 2.0
        sent = 2.0 * (peers - 1) / peers * data
        rounds = 2 * model.layers
        if self.expert_parallel > 1:  # gather and scatter the tokens of all, once a layer
            sent, rounds = (peers - 1) * data, 2 * model.layers
        link = known.nvlink_bytes_per_second if self.nvlink else known.pcie_collective_bytes_per_second
        seconds = rounds * (known.collective_seconds + sent / link)
        if not self.nvlink and copying_seconds > 0:
            seconds += min(seconds, copying_seconds)
        return rounds * sent, seconds
