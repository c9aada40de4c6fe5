"""The pool of KV blocks: which are free, in which order they are taken again, and what free ones still hold.

As vLLM V1 has it: a free block keeps its content until it is taken; the free ones stand in a queue,
taken from its head (least recently freed), returned at its tail, the last block of a sequence first.
A block is found again by the hash of its whole prefix. Several blocks may bear one hash: what
sequences compute at the same time is not merged.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]

_NOWHERE = -1


class BlockPool:
    """``blocks`` usable blocks, all free and empty at first. Ids are 0 to ``blocks`` - 1."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.free = blocks
        self._holders = np.zeros(blocks, dtype=np.int32)
        self._hash = np.zeros(blocks, dtype=np.uint64)
        # the queue of free blocks: a row of ids, in which an entry counts only where _place points back at it
        self._queue = np.zeros(2 * blocks + 64, dtype=np.int32)
        self._queue[:blocks] = np.arange(blocks, dtype=np.int32)
        self._place = np.arange(blocks, dtype=np.int64)
        self._head, self._tail = 0, blocks
        self._by_hash: dict[int, int] = {}
        self._twins: dict[int, list[int]] = {}

    @property
    def used(self) -> int:
        """Blocks that sequences hold."""
        return self.blocks - self.free

    @property
    def cached(self) -> int:
        """Different block contents that can be found."""
        return len(self._by_hash)

    def take(self, count: int) -> Ids:
        """The next ``count`` free blocks, whose content is forgotten; they are held once. ``count`` <= ``free``."""
        if count > self.free:
            raise ValueError(f"{count} blocks asked of a pool with {self.free} free")
        taken = np.empty(count, dtype=np.int32)
        found = 0
        while found < count:
            end = min(self._head + count - found, self._tail)
            ids = self._queue[self._head : end]
            good = ids[self._place[ids] == np.arange(self._head, end)]
            taken[found : found + len(good)] = good
            found += len(good)
            self._head = end
        self._place[taken] = _NOWHERE
        self._holders[taken] = 1
        self.free -= count
        full = taken[self._hash[taken] != 0]
        if len(full):
            self._forget(full)
        return taken

    def take_one(self) -> int:
        """As ``take(1)``, without the price of arithmetic on arrays: decodes take their blocks one by one."""
        if self.free == 0:
            raise ValueError("a block asked of a pool with none free")
        head = self._head
        block = self._queue.item(head)
        while self._place.item(block) != head:
            head += 1
            block = self._queue.item(head)
        self._head = head + 1
        self._place[block] = _NOWHERE
        self._holders[block] = 1
        self.free -= 1
        key = self._hash.item(block)
        if key:
            self._hash[block] = 0
            self._forget_one(block, key)
        return block

    def release(self, table: Ids) -> None:
        """A sequence lets go of its blocks, given in the order of its table."""
        self._holders[table] -= 1
        back = table[::-1]
        back = back[self._holders[back] == 0]
        if self._tail + len(back) > len(self._queue):
            self._compact()
        end = self._tail + len(back)
        self._queue[self._tail : end] = back
        self._place[back] = np.arange(self._tail, end)
        self._tail = end
        self.free += len(back)

    def share(self, table: Ids) -> None:
        """Another sequence holds these blocks too; free ones leave the queue, their content stays."""
        back = self.idle(table)
        self._place[back] = _NOWHERE
        self.free -= len(back)
        self._holders[table] += 1

    def idle(self, table: Ids) -> Ids:
        """Those of the blocks that nobody holds."""
        idle: Ids = table[self._holders[table] == 0]
        return idle

    def holders(self, block: int) -> int:
        """How many sequences hold a block."""
        return int(self._holders[block])

    def remember(self, table: Ids, hashes: NDArray[np.uint64]) -> None:
        """These blocks now hold the contents of these hashes."""
        self._hash[table] = hashes
        keys = hashes.tolist()
        if self._by_hash.keys().isdisjoint(keys):
            self._by_hash.update(zip(keys, table.tolist(), strict=True))
            return
        for block, key in zip(table.tolist(), keys, strict=True):
            if key in self._by_hash:
                self._twins.setdefault(key, []).append(block)
            else:
                self._by_hash[key] = block

    def longest_prefix(self, hashes: NDArray[np.uint64]) -> Ids:
        """The blocks that hold the beginning of this chain, as far as it goes."""
        found = []
        known = self._by_hash
        for key in hashes.tolist():
            block = known.get(key)
            if block is None:
                break
            found.append(block)
        return np.array(found, dtype=np.int32)

    def _forget(self, blocks: Ids) -> None:
        known, twins = self._by_hash, self._twins
        keys = self._hash[blocks].tolist()
        self._hash[blocks] = 0
        if twins.keys().isdisjoint(keys):
            deque(map(known.__delitem__, keys), maxlen=0)
            return
        for block, key in zip(blocks.tolist(), keys, strict=True):
            self._forget_one(block, key)

    def _forget_one(self, block: int, key: int) -> None:
        known = self._by_hash
        twins = self._twins.get(key)
        if twins is None:
            del known[key]
            return
        if known[key] == block:
            known[key] = twins.pop(0)
        else:
            twins.remove(block)
        if not twins:
            del self._twins[key]

    def _compact(self) -> None:
        ids = self._queue[self._head : self._tail]
        good = ids[self._place[ids] == np.arange(self._head, self._tail)]
        self._queue[: len(good)] = good
        self._place[good] = np.arange(len(good))
        self._head, self._tail = 0, len(good)
