"""How vLLM V0 picks the sequences of an iteration (vllm/core/scheduler.py and block_manager.py, 0.6.6).

Prefills go alone and first, unless chunked; then the running ones, each of which needs a free block at hand
whether or not its last one has room. Who finds none sends the last of the running away: to be recomputed, or,
its blocks copied to the host, to the swapped queue. Swapped sequences come back before anybody new is let in,
but not in an iteration that sent one away. When the host has no room left, the engine dies.
"""

from __future__ import annotations

import math
from collections import deque

from drill.serving.config import EngineConfig
from drill.serving.kv_memory import KvMemory
from drill.serving.request import PreemptionMode
from drill.serving.sequences import Lookups, Plan, Sequence

DEATH = "Aborted due to the lack of CPU swap space"
RECOMPUTED_GROUP = "a group of several sequences can't be recomputed"


class SchedulerV0:
    """The queues of one replica and their rules. ``host_blocks`` is the room of the swap pool."""

    def __init__(self, config: EngineConfig, memory: KvMemory, host_blocks: int) -> None:
        self.config = config
        self.memory = memory
        self.host_blocks = self.host_free = host_blocks
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self.swapped: deque[Sequence] = deque()
        self.lookups = Lookups()
        self.lookups_again = Lookups()
        """Those of sequences that had been preempted."""
        self._refused: tuple[Sequence, int] | None = None

    def add(self, sequence: Sequence) -> None:
        """It joins the queue."""
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """It ends early, wherever it stands."""
        for queue in (self.running, self.waiting, self.swapped):
            if sequence in queue:
                queue.remove(sequence)
                break
        self.host_free += sequence.host_blocks
        sequence.host_blocks = 0
        self.memory.drop(sequence, returns=False)

    def arrivals_matter(self) -> bool:
        """Whether one who comes now might be let in at once."""
        return not self.waiting

    def timer(self, now: float) -> float:
        """Nothing happens by itself."""
        del now
        return math.inf

    deferred = 0

    def schedule(self, now: float) -> Plan:
        """Decide one iteration; blocks are taken at once."""
        del now
        plan = Plan()
        if self.config.chunked_prefill:
            self._schedule_chunked(plan)
        else:
            self._schedule_whole(plan)
        return plan

    def _schedule_whole(self, plan: Plan) -> None:
        seats = self.config.max_sequences - sum(one.members for one in self.running)
        if not self.swapped:
            new = self._prefills(plan, self.config.max_batched_tokens, seats)
            if new:
                self.running += new
                return
        self.running, budget, _ = self._decodes(plan, self.config.max_batched_tokens)
        if not plan.preempted:
            self.running += self._swap_in(plan, budget, seats)

    def _schedule_chunked(self, plan: Plan) -> None:
        before = self.running
        kept, budget, left = self._decodes(plan, self.config.max_batched_tokens)
        seats = self.config.max_sequences - sum(one.members for one in kept)
        back: list[Sequence] = []
        if not plan.preempted:
            back = self._swap_in(plan, budget, seats)
            budget -= sum(one.members if one.chunk == 1 else one.chunk for one in back)
            seats -= sum(one.members for one in back)
        new = self._prefills(plan, budget, seats)
        decoding = [one for one in kept if one.length - one.computed == 1]
        partial = [one for one in kept if one.length - one.computed != 1]
        self.running = left + back + decoding + partial + new
        plan.changed = plan.changed or self.running != before

    def _decodes(self, plan: Plan, budget: int) -> tuple[list[Sequence], int, list[Sequence]]:
        """Those that run on, the budget left, and those that got none of it."""
        queue, place = list(self.running), 0
        kept: list[Sequence] = []
        pool, size = self.memory.pool, self.memory.block_tokens
        while place < len(queue):
            sequence = queue[place]
            reach = sequence.computed + 1
            has_room = sequence.members == 1 and reach <= sequence.held * size
            if has_room and sequence.prompt < sequence.length == reach and budget and pool.free:
                sequence.chunk = 1  # a decode with room in its last block: nearly all there is, so no detours
                plan.decodes.append(sequence)
                kept.append(sequence)
                budget -= 1
                place += 1
                continue
            chunk = sequence.length - sequence.computed
            chunk = min(chunk, budget) if self.config.chunked_prefill else chunk
            if chunk == 0:
                break
            place += 1
            while not self._can_append(sequence):
                victim = queue.pop() if place < len(queue) else sequence
                self._preempt(victim, plan)
                if plan.died or victim is sequence:
                    break
            else:
                self.memory.grow(sequence, sequence.computed + chunk)
                plan.schedule(sequence, chunk)
                kept.append(sequence)
                budget -= chunk * (sequence.members if chunk == 1 else 1)
                budget = max(0, budget)
            if plan.died:
                break
        for victim, mode in plan.preempted:
            if mode is PreemptionMode.RECOMPUTE:
                self.waiting.appendleft(victim)
            else:
                self.swapped.append(victim)
        return kept, budget, queue[place:]

    def _can_append(self, sequence: Sequence) -> bool:
        """V0 reckons with one new block for each member, whether it needs one or not."""
        need = sequence.members
        if sequence.length - sequence.computed > 1:  # a chunk of a prompt, which has its blocks already
            need = 1 if sequence.length % self.memory.block_tokens else 0
        return need <= self.memory.pool.free

    def _preempt(self, victim: Sequence, plan: Plan) -> None:
        mode = self.config.preemption
        if mode is None:
            mode = PreemptionMode.RECOMPUTE if victim.members == 1 else PreemptionMode.SWAP
        if mode is PreemptionMode.RECOMPUTE:
            if victim.members > 1:
                plan.died = RECOMPUTED_GROUP
            self.memory.drop(victim, returns=True)
        else:
            if self._swap_need(victim) > self.host_free:
                plan.died = DEATH
                plan.preempted.append((victim, mode))
                return
            computed = victim.computed
            victim.host_blocks = victim.held
            self.host_free -= victim.held
            plan.swap_out_blocks += victim.held
            self.memory.drop(victim, returns=False)
            victim.computed = computed
        plan.preempted.append((victim, mode))

    def _swap_need(self, sequence: Sequence) -> int:
        """Full blocks, and one for each member's next token."""
        size = self.memory.block_tokens
        full = (sequence.computed if sequence.length - sequence.computed == 1 else sequence.length) // size
        shared = min(full, sequence.request.prompt_tokens // size)
        return shared + sequence.members * (full - shared + 1)

    def _swap_in(self, plan: Plan, budget: int, seats: int) -> list[Sequence]:
        back: list[Sequence] = []
        memory = self.memory
        while self.swapped:
            sequence = self.swapped[0]
            if self._swap_need(sequence) > memory.pool.blocks:  # it never will fit again
                plan.ignored.append(self.swapped.popleft())
                continue
            if memory.pool.free - self._swap_need(sequence) < memory.watermark_blocks:
                break
            chunk = sequence.length - sequence.computed
            chunk = min(chunk, budget) if chunk > 1 else sequence.members
            if chunk == 0 or chunk > budget or sequence.members > seats:
                break
            self.swapped.popleft()
            plan.swap_in_blocks += sequence.host_blocks
            self.host_free += sequence.host_blocks
            sequence.host_blocks = 0
            memory.grow(sequence, sequence.length)
            plan.schedule(sequence, 1 if sequence.length - sequence.computed == 1 else chunk)
            budget -= chunk
            seats -= sequence.members
            back.append(sequence)
            plan.changed = True
        return back

    def _prefills(self, plan: Plan, budget: int, seats: int) -> list[Sequence]:
        new: list[Sequence] = []
        memory = self.memory
        while self.waiting:
            sequence = self.waiting[0]
            if self._refused == (sequence, memory.changes):
                break
            whole = sequence.blocks_for(sequence.length, memory.block_tokens)
            limit = self.config.max_model_tokens
            if not self.config.chunked_prefill:
                limit = min(limit, self.config.max_batched_tokens)
            if sequence.length > limit or memory.pool.blocks - whole < memory.watermark_blocks:
                plan.ignored.append(self.waiting.popleft())
                continue
            found = memory.find(sequence)
            need = whole - len(found) + len(memory.pool.idle(found))
            if memory.pool.free - need < memory.watermark_blocks:
                self._refused = (sequence, memory.changes)
                break
            chunk = sequence.length - len(found) * memory.block_tokens
            if self.config.chunked_prefill:
                chunk = min(chunk, budget)
            if chunk == 0 or chunk > budget or sequence.members > seats:
                break
            self.waiting.popleft()
            memory.adopt(sequence, found)
            memory.grow(sequence, sequence.length)
            memory.publish(sequence, sequence.computed + chunk)
            if memory.caching:
                self._note_lookup(sequence)
            if not sequence.record.preemptions:
                sequence.record.cached_tokens = sequence.computed
            plan.schedule(sequence, chunk)
            budget -= chunk
            seats -= sequence.members
            plan.changed = True
            new.append(sequence)
        return new

    def _note_lookup(self, sequence: Sequence) -> None:
        self.lookups.add(sequence.length, sequence.computed)
        if sequence.record.preemptions:
            self.lookups_again.add(sequence.length, sequence.computed)
