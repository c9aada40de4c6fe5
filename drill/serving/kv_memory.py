"""Block tables over the pool: growing and dropping a sequence's blocks, and finding its prefix again."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from drill.serving.blocks import BlockPool, Ids
from drill.serving.sequences import Sequence

_NONE: Ids = np.empty(0, dtype=np.int32)


class KvMemory:
    """The KV cache of one replica. ``watermark_blocks`` stay free when somebody is let in."""

    def __init__(self, blocks: int, block_tokens: int, watermark_blocks: int, *, caching: bool) -> None:
        self.pool = BlockPool(blocks)
        self.block_tokens = block_tokens
        self.watermark_blocks = watermark_blocks
        self.caching = caching
        self.changes = 0
        """Rises whenever blocks become free or findable: until then, who didn't fit won't fit."""

    def lacking(self, sequence: Sequence, slots: int) -> int:
        """Blocks that the sequence needs beyond those it holds for so many tokens."""
        return sequence.blocks_for(slots, self.block_tokens) - sequence.held

    def grow_all(self, sequences: Iterable[Sequence], iterations: int) -> None:
        """Give each blocks for its chunk in so many iterations, which are free."""
        size = self.block_tokens
        for one in sequences:
            reach = one.computed + one.chunk * iterations
            if reach > one.held * size or one.members > 1:  # else its last block has room
                self.grow(one, reach)

    def grow(self, sequence: Sequence, slots: int) -> bool:
        """Give it blocks for so many tokens; False, and nothing done, where too few are free."""
        if sequence.members == 1 and slots <= sequence.held * self.block_tokens:
            return True  # its last block has room: nearly always so, and no detours then
        need = self.lacking(sequence, slots)
        if need <= 0:
            return True
        if need > self.pool.free:
            return False
        held = sequence.held
        if held + need > len(sequence.table):
            room = max(held + need, sequence.blocks_for(sequence.final, self.block_tokens))
            table = np.empty(room, dtype=np.int32)
            table[:held] = sequence.table[:held]
            sequence.table = table
        if need == 1:
            sequence.table[held] = self.pool.take_one()
        else:
            sequence.table[held : held + need] = self.pool.take(need)
        sequence.held = held + need
        return True

    def find(self, sequence: Sequence) -> Ids:
        """Blocks with the beginning of its tokens, all but the last: that one has to be computed."""
        if not self.caching:
            return _NONE
        return self.pool.longest_prefix(sequence.hashes(sequence.length - 1, self.block_tokens))

    def adopt(self, sequence: Sequence, found: Ids) -> None:
        """A sequence without blocks takes found ones as the beginning of its table."""
        self.pool.share(found)
        sequence.table = found
        sequence.held = sequence.cached_blocks = len(found)
        sequence.computed = len(found) * self.block_tokens

    def publish(self, sequence: Sequence, tokens: int) -> None:
        """What is full of its first ``tokens`` tokens may be found from now on.

        Of what it generates only when it lets go: before, nobody could have the same beginning.
        """
        if not self.caching or sequence.members > 1:
            return
        full = min(tokens, sequence.prompt) // self.block_tokens
        if full > sequence.cached_blocks:
            self._remember(sequence, full, sequence.prompt)

    def drop(self, sequence: Sequence, *, returns: bool) -> None:
        """It lets go of its blocks. ``returns``: it will look for them again, or for its answer somebody may."""
        if self.caching and sequence.members == 1 and (returns or sequence.request.answer is not None):
            full = sequence.computed // self.block_tokens
            if full > sequence.cached_blocks:
                self._remember(sequence, full, sequence.computed)
        self.pool.release(sequence.table[: sequence.held])
        sequence.table = _NONE
        sequence.held = sequence.cached_blocks = sequence.stored_blocks = 0
        sequence.furthest = max(sequence.furthest, sequence.computed)
        sequence.computed = 0
        self.changes += 1

    def _remember(self, sequence: Sequence, full: int, tokens: int) -> None:
        done = sequence.cached_blocks
        hashes = sequence.hashes(max(tokens, full * self.block_tokens), self.block_tokens)
        self.pool.remember(sequence.table[done:full], hashes[done:full])
        sequence.cached_blocks = full
        self.changes += 1
