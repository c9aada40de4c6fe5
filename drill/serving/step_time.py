"""What one iteration of an engine is made of, and who tells how long it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)
class Batch:
    """The work of one iteration, summed over its sequences.

    ``prefill_pairs``: tokens of prefill chunks times the tokens each attends to, summed;
    ``prefill_pairs_rise``: by how much that grows should the same chunks be followed by the next ones;
    ``prefill_context``: tokens whose keys and values the chunks read; ``decode_context``: tokens that
    the decoding sequences attend to, summed; ``samples``: sequences that yield a token. ``swap_in_blocks``
    and ``swap_out_blocks`` are copied before the forward pass, which waits for them (V0).
    """

    prefill_tokens: int = 0
    prefill_pairs: float = 0.0
    prefill_pairs_rise: float = 0.0
    prefill_context: int = 0
    prefills: int = 0
    decodes: int = 0
    decode_context: int = 0
    samples: int = 0
    swap_in_blocks: int = 0
    swap_out_blocks: int = 0


@dataclass(frozen=True, slots=True)
class StepCost:
    """How long an iteration takes and what it moves, on each of the engine's GPUs.

    ``busy_seconds`` is the part in which SMs compute, ``memory_bytes`` what HBM delivers or takes.
    ``collective_bytes`` go over NVLink where there is one, else over PCIe (``collective_pcie``), in each
    direction. ``copy_seconds`` is the part in which the forward pass waits for host copies.
    """

    seconds: float
    busy_seconds: float = 0.0
    memory_bytes: float = 0.0
    collective_bytes: float = 0.0
    collective_pcie: bool = False
    copy_seconds: float = 0.0
    collective_seconds: float = 0.0
    to_device_bytes: float = 0.0
    to_host_bytes: float = 0.0


class StepTimer(Protocol):
    """Tells how long iterations take: a roofline, or a real engine's measured times."""

    def cost(self, batch: Batch, copying_seconds: float) -> StepCost:
        """Of one iteration. ``copying_seconds``: host copies under way beside it, at full speed of the link."""

    def rise(self, batch: Batch) -> float:
        """Seconds by which each further iteration of the same batch takes longer: its contexts grow."""


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Times fitted to a real engine's iterations, linear in what an iteration does.

    For engines whose machine no roofline describes, such as the one that ``make real`` runs on a CPU.
    """

    fixed_seconds: float
    prefill_token_seconds: float
    decode_seconds: float
    context_token_seconds: float = 0.0
    swap_block_seconds: float = 0.0

    def cost(self, batch: Batch, copying_seconds: float) -> StepCost:
        """See StepTimer."""
        del copying_seconds
        copy = self.swap_block_seconds * (batch.swap_in_blocks + batch.swap_out_blocks)
        busy = (
            self.prefill_token_seconds * batch.prefill_tokens
            + self.decode_seconds * batch.decodes
            + self.context_token_seconds * batch.decode_context
        )
        return StepCost(self.fixed_seconds + busy + copy, busy, copy_seconds=copy)

    def rise(self, batch: Batch) -> float:
        """See StepTimer."""
        return self.context_token_seconds * batch.decodes
