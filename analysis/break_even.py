"""Whether a preempted sequence is sooner back by a copy over the link or by computing it again, by its length.

A copy goes out and comes in: 2 x KV bytes / link. Computing anew takes 2 x active weights x tokens and, in attention,
layers x width x tokens x (tokens it looks back on) / 2 x 2 floating-point operations, and at least one reading of the
weights that it meets from memory. Both are of one GPU's share, over its own link.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.capacity import Serving
from exporter.hardware import Gpu
from exporter.kv_layers import KvModel
from exporter.model_weights import Weights

_PER_OCTAVE = 64


@dataclass(frozen=True, slots=True)
class Reached:
    """What of the makers' figures is reached: assumptions, to be replaced by what was measured.

    ``flops``, ``link``, ``memory``: shares. ``ways``: 2 where a copy goes out and comes in, 1 where a tier is written
    through, so that only the way in is waited for.
    """

    flops: float = 0.5
    link: float = 0.8
    memory: float = 0.8
    ways: int = 2


@dataclass(frozen=True, slots=True)
class Times:
    """Of one sequence of so many tokens, in seconds.

    ``equal_link_bytes_per_second``: what the link has to give of itself for a copy to take as long as computing anew.
    """

    tokens: int
    swap_seconds: float
    recompute_seconds: float
    equal_link_bytes_per_second: float

    @property
    def swap_is_faster(self) -> bool:
        """Whether the copy is done sooner."""
        return self.swap_seconds < self.recompute_seconds


@dataclass(frozen=True, slots=True)
class Costs:
    """Of a model on a kind of GPU."""

    model: KvModel
    weights: Weights
    gpu: Gpu
    serving: Serving
    reached: Reached

    def times(self, tokens: int) -> Times:
        """Both, of one length."""
        moved, recompute = self._moved(tokens), self._recompute(tokens)
        link = self.gpu.pcie_bytes_per_second * self.reached.link
        return Times(tokens, moved / link, recompute, moved / recompute)

    def _moved(self, tokens: int) -> float:
        held = sum(
            kind.layers
            * kind.bytes_per_token_gpu(self.serving.tensor_parallel)
            * _seen(tokens, kind.window_tokens)
            for kind in self.model.kinds
        )
        return self.reached.ways * held / self.serving.pipeline_parallel

    def _recompute(self, tokens: int) -> float:
        linear = 2 * self.weights.active * tokens
        pairs = sum(kind.layers * _pairs(tokens, kind.window_tokens) for kind in self.model.kinds)
        attention = 2 * self.weights.attention_width * pairs
        gpus = self.serving.gpus
        computing = (linear + attention) / gpus / (self._flops * self.reached.flops)
        met = self.weights.active * self.weights.bits / 8 / gpus
        return max(computing, met / (self.gpu.memory_bytes_per_second * self.reached.memory))

    @property
    def _flops(self) -> float:
        """8-bit weights are multiplied as such where the GPU can."""
        eight = self.gpu.flops_8bit
        return eight if eight is not None and self.weights.bits == 8 else self.gpu.flops_16bit  # noqa: PLR2004


def changes(costs: Costs, longest: int) -> list[int]:
    """Lengths from which on the other way is faster, up to ``longest`` tokens, to a hundredth."""
    found: list[int] = []
    tokens, before = 1, costs.times(1).swap_is_faster
    while tokens < longest:
        following = min(longest, max(tokens + 1, round(tokens * 2 ** (1 / _PER_OCTAVE))))
        now = costs.times(following).swap_is_faster
        if now is not before:
            found.append(_first(costs, tokens, following, now))
        tokens, before = following, now
    return found


def _first(costs: Costs, low: int, high: int, now: bool) -> int:  # noqa: FBT001 - what is faster behind it
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if costs.times(middle).swap_is_faster is now else (middle, high)
    return high


def _seen(tokens: int, window: int | None) -> int:
    return tokens if window is None else min(tokens, window)


def _pairs(tokens: int, window: int | None) -> float:
    """Of a token and one that it looks back on."""
    seen = _seen(tokens, window)
    return seen * (seen + 1) / 2 + (tokens - seen) * seen
