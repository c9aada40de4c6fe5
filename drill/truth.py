"""What no metric tells of an engine, read off the model."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from drill.serving.engine import Engine


def tail_waste_tokens(engine: Engine) -> int:
    """Slots without a token in the last blocks of sequences, now; what the iteration under way computes has its slot.

    Blocks that a prompt got before its tokens are computed are no waste; of these only what the prompt will leave
    empty counts.
    """
    size = engine.config.block_tokens
    flight = engine.under_way
    planned = set() if flight is None else {id(one) for one in (*flight.plan.decodes, *flight.plan.prefills)}
    waste = 0
    for one in engine.sequences().values():
        if not one.held:
            continue
        empty = one.held * size - one.filled_slots(size)
        if id(one) in planned:
            empty -= one.chunk * (one.members if one.computed >= one.prompt else 1)
        if one.members == 1 and empty >= size:
            empty = max(0, one.held * size - one.length)
        waste += empty
    return waste


def held_blocks(engine: Engine, requests: Iterable[int]) -> int:
    """Blocks that these requests hold, those that several of them share counted once."""
    known = engine.sequences()
    holding = [one for one in map(known.get, requests) if one is not None and one.held]
    if not engine.memory.caching:  # only what a prefix cache finds is shared
        return sum(one.held for one in holding)
    # a flag a block: sorting or hashing all ids of all tables takes more time than the engine itself
    held = np.zeros(engine.memory.pool.blocks, dtype=bool)
    for one in holding:
        held[one.table[: one.held]] = True
    return int(np.count_nonzero(held))
