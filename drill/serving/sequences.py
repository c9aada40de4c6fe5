"""A sequence while an engine works on it, and the plan of one iteration."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from drill.serving.blocks import Ids
from drill.serving.content import Segment, chain_hashes
from drill.serving.request import PreemptionMode, Record, Request
from drill.serving.step_time import Batch

_OWN_PROMPT, _OWN_ANSWER = 1 << 63, 1 << 62


class Sequence:
    """One request inside the engine: with n > 1, the whole group, whose members go in step.

    ``computed``: tokens whose keys and values are in the cache, of each member; ``length``: tokens known, so
    that ``length`` - ``computed`` are to be computed before the next one; ``final``: the length it ends with;
    ``furthest``: tokens that have been computed at least once; ``table``: its blocks, ``held`` of them, of which
    the prefix cache knows the first ``cached_blocks`` and ``stored_blocks`` went to the tier below; ``chunk``:
    tokens planned for the iteration under way. Members share the full blocks of the prompt and have the rest
    each.
    """

    __slots__ = (
        "cached_blocks",
        "chunk",
        "computed",
        "final",
        "furthest",
        "held",
        "host_blocks",
        "last_token",
        "length",
        "loaded_at",
        "loaded_tokens",
        "members",
        "prompt",
        "prompt_hashes",
        "record",
        "request",
        "stored_blocks",
        "table",
        "unreported",
    )

    def __init__(self, request: Request, queued: float) -> None:
        self.request = request
        self.record = Record(request, queued)
        self.members = request.sequences
        self.prompt = self.length = request.prompt_tokens
        self.final = request.prompt_tokens + request.output_tokens
        self.computed = self.furthest = self.chunk = 0
        self.table: Ids = np.empty(0, dtype=np.int32)
        self.held = self.cached_blocks = self.stored_blocks = self.host_blocks = 0
        self.last_token: float | None = None
        self.loaded_at: float | None = None
        """When the blocks on their way from the tier below are there; None: none are."""
        self.loaded_tokens = 0
        self.unreported = 0
        """Preemptions that no output has carried to the front end yet: V1 counts one only then."""
        self.prompt_hashes: NDArray[np.uint64] | None = None

    def blocks_for(self, slots: int, block_tokens: int) -> int:
        """Blocks that hold so many tokens of each member."""
        whole = -(-slots // block_tokens)
        if self.members == 1 or slots <= self.prompt:
            return whole
        shared = self.prompt // block_tokens
        return shared + self.members * (whole - shared)

    def filled_slots(self, block_tokens: int) -> int:
        """Slots of its blocks that hold a token."""
        if self.members == 1 or self.computed <= self.prompt:
            return self.computed
        shared = self.prompt // block_tokens * block_tokens
        return shared + self.members * (self.computed - shared)

    def hashes(self, tokens: int, block_tokens: int) -> NDArray[np.uint64]:
        """The hash chain of the full blocks of its first ``tokens`` tokens."""
        if self.prompt_hashes is None:
            self.prompt_hashes = chain_hashes(self._prompt(), block_tokens)
        blocks = tokens // block_tokens
        if blocks <= len(self.prompt_hashes):
            return self.prompt_hashes[:blocks]
        answer = self.request.answer
        answer = _OWN_ANSWER + self.request.request_id if answer is None else answer
        return chain_hashes((*self._prompt(), Segment(answer, tokens - self.prompt)), block_tokens)

    def _prompt(self) -> tuple[Segment, ...]:
        return self.request.content or (Segment(_OWN_PROMPT + self.request.request_id, self.prompt),)


@dataclass(slots=True)
class Lookups:
    """Tokens that were looked for in the prefix cache as sequences were let in, and found there or below."""

    queried: int = 0
    found: int = 0
    found_below: int = 0

    def add(self, queried: int, found: int, found_below: int = 0) -> None:
        """One more sequence."""
        self.queried += queried
        self.found += found
        self.found_below += found_below


@dataclass(slots=True)
class Plan:
    """What a scheduler decided for one iteration. Every sequence in it has its ``chunk`` set.

    ``decodes`` compute one token and yield the next; ``prefills`` compute a chunk and yield one if it is the last.
    """

    decodes: list[Sequence] = field(default_factory=list)
    prefills: list[Sequence] = field(default_factory=list)
    preempted: list[tuple[Sequence, PreemptionMode]] = field(default_factory=list)
    ignored: list[Sequence] = field(default_factory=list)
    changed: bool = False
    """Whether somebody was let in: the next batch will be another."""
    died: str | None = None
    swap_in_blocks: int = 0
    swap_out_blocks: int = 0

    @property
    def empty(self) -> bool:
        """Whether the iteration would do nothing at all."""
        return not (self.decodes or self.prefills or self.preempted or self.ignored or self.died)

    @property
    def steady(self) -> bool:
        """Whether the same batch comes again while none ends and nobody arrives."""
        return bool(self.decodes or self.prefills) and not (self.changed or self.preempted or self.ignored)

    def schedule(self, sequence: Sequence, chunk: int) -> None:
        """It computes ``chunk`` tokens."""
        sequence.chunk = chunk
        if chunk == 1 and sequence.computed >= sequence.prompt and sequence.computed + 1 == sequence.length:
            self.decodes.append(sequence)
        else:
            self.prefills.append(sequence)

    def unschedule(self, sequence: Sequence) -> int:
        """It doesn't after all; the tokens that this saves, 0 where it wasn't planned."""
        for row in (self.decodes, self.prefills):
            if sequence in row:
                row.remove(sequence)
                return sequence.chunk
        return 0

    def batch(self) -> Batch:
        """The work, summed."""
        batch = Batch(swap_in_blocks=self.swap_in_blocks, swap_out_blocks=self.swap_out_blocks)
        for one in self.decodes:
            batch.decodes += one.members
            batch.decode_context += one.members * one.length
        batch.samples = batch.decodes
        for one in self.prefills:
            chunk, context = one.chunk, one.computed
            batch.prefills += 1
            batch.prefill_tokens += chunk
            batch.prefill_pairs += chunk * (context + 0.5 * chunk)
            batch.prefill_pairs_rise += chunk * chunk
            batch.prefill_context += context + chunk
            batch.samples += one.members if context + chunk == one.length else 0
        return batch
