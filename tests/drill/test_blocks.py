"""The pool against a slow one that is plainly right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from drill.serving.blocks import BlockPool

BLOCKS = 9


class Pool(RuleBasedStateMachine):
    """``queue``: free blocks in the order they will be taken; ``content``: what each block holds."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(BLOCKS)
        self.queue = list(range(BLOCKS))
        self.holders = [0] * BLOCKS
        self.content: dict[int, int] = {}
        self.remembered: dict[int, list[int]] = {}
        self.tables: list[np.ndarray] = []

    @rule(count=st.integers(0, BLOCKS))
    def take(self, count: int) -> None:
        if count > len(self.queue):
            with pytest.raises(ValueError, match="asked of a pool"):
                self.pool.take(count)
            return
        taken = self.pool.take(count)
        assert taken.tolist() == self.queue[:count]
        self.queue = self.queue[count:]
        for block in taken.tolist():
            self.holders[block] = 1
            if block in self.content:
                self.remembered[self.content.pop(block)].remove(block)
        self.tables.append(taken)

    @rule()
    def take_one(self) -> None:
        if not self.queue:
            with pytest.raises(ValueError, match="none free"):
                self.pool.take_one()
            return
        block = self.pool.take_one()
        assert block == self.queue.pop(0)
        self.holders[block] = 1
        if block in self.content:
            self.remembered[self.content.pop(block)].remove(block)
        self.tables.append(np.array([block], dtype=np.int32))

    @precondition(lambda self: self.tables)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        table = self.tables.pop(data.draw(st.integers(0, len(self.tables) - 1)))
        self.pool.release(table)
        for block in reversed(table.tolist()):
            self.holders[block] -= 1
            if not self.holders[block]:
                self.queue.append(block)

    @precondition(lambda self: self.tables)
    @rule(data=st.data(), first=st.integers(1, 4))
    def remember(self, data: st.DataObject, first: int) -> None:
        table = data.draw(st.sampled_from(self.tables))
        new = [block for block in table.tolist() if block not in self.content]
        keys = list(range(first, first + len(new)))
        self.pool.remember(np.array(new, dtype=np.int32), np.array(keys, dtype=np.uint64))
        for block, key in zip(new, keys, strict=True):
            self.content[block] = key
            self.remembered.setdefault(key, []).append(block)

    @rule(first=st.integers(1, 4), count=st.integers(1, 4))
    def find_and_share(self, first: int, count: int) -> None:
        keys = list(range(first, first + count))
        expected = []
        for key in keys:
            if not self.remembered.get(key):
                break
            expected.append(self.remembered[key][0])
        found = self.pool.longest_prefix(np.array(keys, dtype=np.uint64))
        assert found.tolist() == expected
        assert self.pool.idle(found).tolist() == [block for block in expected if not self.holders[block]]
        self.pool.share(found)
        for block in expected:
            self.holders[block] += 1
            if block in self.queue:
                self.queue.remove(block)
        self.tables.append(found)

    @invariant()
    def adds_up(self) -> None:
        assert self.pool.free == len(self.queue)
        assert self.pool.used == sum(holders > 0 for holders in self.holders)
        assert [self.pool.holders(block) for block in range(BLOCKS)] == self.holders
        assert self.pool.cached == sum(bool(blocks) for blocks in self.remembered.values())


TestPool = Pool.TestCase
TestPool.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
