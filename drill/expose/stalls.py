"""How late a server answers a scrape: its front end has other things to do while clients come and go.

The model has no front end, so what was measured is drawn from: scrapes of two real vLLM 0.32 servers, each second, on
a machine that was itself busy (recordings vllm-0.32.0 and vllm-0.32.0-offload: 158 scrapes under overload, 16 idle).
On an idle machine such servers took 2 s at most. An answer shows what is so when it is given, not when asked for.
"""

from __future__ import annotations

import random
from bisect import bisect_right

_IDLE = ((0.0, 0.032), (0.5, 0.068), (0.75, 0.075), (1.0, 0.131))
_BUSY = (
    (0.0, 0.006),
    (0.25, 0.018),
    (0.5, 0.038),
    (0.75, 0.123),
    (0.9, 0.365),
    (0.95, 2.0),
    (0.98, 4.0),
    (1.0, 13.442),
)
"""(share of scrapes, seconds they took at most)."""


class Stalls:
    """Of one server. The same ``seed`` gives the same answers in the same order."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 -- repeatable, guards nothing

    def seconds(self, *, busy: bool) -> float:
        """How long the next scrape takes; ``busy``: more requests are in the server than it can run."""
        table = _BUSY if busy else _IDLE
        share = self._chance.random()
        place = bisect_right(table, share, key=lambda row: row[0])
        (low, least), (high, most) = table[place - 1], table[place]
        return least + (most - least) * (share - low) / (high - low)
