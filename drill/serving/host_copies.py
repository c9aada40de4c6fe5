"""Copies of KV blocks between a GPU and its host: in the small pieces of V0, or in large pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

PIECE_SECONDS = 2.3e-6
"""One ``cudaMemcpyAsync`` among many of a few KiB: 2.3 us on an H20 with PCIe 5 (taco-project/FlexKV, pull request
193), 5 to 7 us elsewhere (Wu et al.: DualPath, arXiv 2602.21548, section 5.2). The fastest is taken."""

PAYLOAD_RATIO = 0.92
"""Payload over bytes on the link, packets of 256 bytes: 1 / 1.09 (exporter.pcie.HEADER_FACTOR)."""


class CopyModel(Protocol):
    """How blocks are copied while the forward pass waits."""

    def seconds(self, in_blocks: int, out_blocks: int) -> float:
        """Until both directions are done, one after the other on one stream."""

    def bytes(self, blocks: int) -> float:
        """Payload of so many blocks over one GPU's link."""


@dataclass(frozen=True, slots=True)
class PieceCopies:
    """vLLM V0: a call for each block, layer, and K or V; bound by calls when the pieces are small.

    vLLM's ``swap_blocks`` (csrc/cache_kernels.cu) issues them one by one on the compute stream. 70B on 8
    GPUs, 16-token blocks: 160 pieces of 4 KiB a block.
    """

    block_bytes: float
    layers: int
    link_bytes_per_second: float
    piece_seconds: float = PIECE_SECONDS

    def seconds(self, in_blocks: int, out_blocks: int) -> float:
        """See CopyModel."""
        pieces = 2 * self.layers
        piece = self.block_bytes / pieces / (self.link_bytes_per_second * PAYLOAD_RATIO)
        return (in_blocks + out_blocks) * pieces * max(self.piece_seconds, piece)

    def bytes(self, blocks: int) -> float:
        """See CopyModel."""
        return blocks * self.block_bytes


@dataclass(frozen=True, slots=True)
class PageCopies:
    """Blocks that lie in one piece, or kernels that gather them: bound by the link."""

    block_bytes: float
    link_bytes_per_second: float

    def seconds(self, in_blocks: int, out_blocks: int) -> float:
        """See CopyModel."""
        return (in_blocks + out_blocks) * self.block_bytes / (self.link_bytes_per_second * PAYLOAD_RATIO)

    def bytes(self, blocks: int) -> float:
        """See CopyModel."""
        return blocks * self.block_bytes
