"""How vLLM V1 picks the tokens of an iteration (vllm/v1/core/sched/scheduler.py and kv_cache_manager.py, 0.8 to 0.33).

There are no phases: each sequence has tokens to compute, and a budget of tokens is dealt out, to the running
ones first, then to the queue. When a running one finds no block, the last of the running loses all of its own,
goes to the head of the queue and computes them again, save what the prefix cache still has. Nobody is let in
during such an iteration, and who stands at the head of the queue and doesn't fit holds up all behind.
"""

from __future__ import annotations

import math
from collections import deque

from drill.serving.config import EngineConfig, Policy
from drill.serving.kv_memory import KvMemory
from drill.serving.offload import OffloadTier
from drill.serving.request import PreemptionMode
from drill.serving.sequences import Lookups, Plan, Sequence


class SchedulerV1:
    """The queues of one replica and their rules."""

    def __init__(self, config: EngineConfig, memory: KvMemory, tier: OffloadTier | None) -> None:
        self.config = config
        self.memory = memory
        self.tier = tier
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self.swapped: deque[Sequence] = deque()
        self._loading: list[Sequence] = []
        self.lookups = Lookups()
        self.lookups_again = Lookups()
        """Those of sequences that had been preempted."""
        self._refused: tuple[Sequence, int] | None = None

    def add(self, sequence: Sequence) -> None:
        """It joins the queue: at its end, or by priority before those that are less urgent."""
        if self.config.policy is Policy.FCFS:
            self.waiting.append(sequence)
            return
        place = len(self.waiting)
        while place and _urgency(self.waiting[place - 1]) > _urgency(sequence):
            place -= 1
        self.waiting.insert(place, sequence)

    def remove(self, sequence: Sequence) -> None:
        """It ends early, wherever it stands."""
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)
            if sequence in self._loading:
                self._loading.remove(sequence)
        self.memory.drop(sequence, returns=False)

    def arrivals_matter(self) -> bool:
        """Whether one who comes now might be let in at once."""
        return self.config.policy is not Policy.FCFS or len(self.waiting) == len(self._loading)

    def timer(self, now: float) -> float:
        """When the next blocks arrive from the tier below; infinite: none will."""
        times = (one.loaded_at for one in self._loading if one.loaded_at is not None)
        return min((time for time in times if time > now), default=math.inf)

    @property
    def deferred(self) -> int:
        """How many of those waiting wait for blocks from the tier below."""
        return len(self._loading)

    def schedule(self, now: float) -> Plan:
        """Decide one iteration; blocks are taken at once."""
        plan = Plan()
        budget = self._schedule_running(plan, now)
        if not plan.preempted:
            self._schedule_waiting(plan, budget, now)
        return plan

    def _schedule_running(self, plan: Plan, now: float) -> int:
        budget = self.config.max_batched_tokens
        longest = self.config.long_prefill_tokens or budget
        memory, running, size = self.memory, self.running, self.memory.block_tokens
        decodes = plan.decodes
        index = 0
        while index < len(running) and budget > 0:
            sequence = running[index]
            reach = sequence.computed + 1
            if sequence.prompt < sequence.length == reach <= sequence.held * size:
                sequence.chunk = 1  # a decode with room in its last block: nearly all there is, so no detours
                decodes.append(sequence)
                budget -= 1
                index += 1
                continue
            chunk = min(sequence.length - sequence.computed, budget, longest)
            reach = sequence.computed + chunk
            while reach > sequence.held * size and not memory.grow(sequence, reach):
                victim = self._victim()
                saved = plan.unschedule(victim) if victim is not running[-1] else 0
                budget += saved
                index -= saved > 0
                self._preempt(victim, plan, now)
                if victim is sequence:
                    return budget
            if sequence.computed < sequence.prompt:
                memory.publish(sequence, reach)
            plan.schedule(sequence, chunk)
            budget -= chunk
            index += 1
        return budget

    def _victim(self) -> Sequence:
        if self.config.policy is Policy.FCFS:
            return self.running[-1]
        return max(self.running, key=_urgency)

    def _preempt(self, victim: Sequence, plan: Plan, now: float) -> None:
        self.running.remove(victim)
        if self.tier is not None:
            self.tier.keep(victim, now)
        self.memory.drop(victim, returns=True)
        self.waiting.appendleft(victim)
        plan.preempted.append((victim, PreemptionMode.RECOMPUTE))

    def _schedule_waiting(self, plan: Plan, budget: int, now: float) -> None:
        place = 0
        while place < len(self.waiting) and budget > 0 and len(self.running) < self.config.max_sequences:
            sequence = self.waiting[place]
            if sequence.loaded_at is not None:
                if sequence.loaded_at > now:
                    place += 1
                    continue
                sequence.computed, sequence.loaded_at = sequence.loaded_tokens, None
                self._loading.remove(sequence)
                self.memory.publish(sequence, sequence.computed)
            if self._refused == (sequence, self.memory.changes):
                return
            spent = self._admit(sequence, budget, now)
            if spent is None:
                return
            plan.changed = True
            if spent == 0:  # its blocks are on their way
                place += 1
                continue
            del self.waiting[place]
            self.running.append(sequence)
            plan.schedule(sequence, spent)
            budget -= spent

    def _admit(self, sequence: Sequence, budget: int, now: float) -> int | None:
        """Tokens it gets; 0: it waits for blocks from the tier below; None: it doesn't fit."""
        memory, size = self.memory, self.memory.block_tokens
        fresh = sequence.held == 0
        found = memory.find(sequence) if fresh else sequence.table[: sequence.held]
        local = len(found) * size if fresh else sequence.computed
        below = 0
        if fresh and self.tier is not None:
            below = self.tier.known_after(sequence, len(found))
        computed = local + below * size
        chunk = min(sequence.length - computed, self.config.long_prefill_tokens or sequence.length)
        if not self.config.chunked_prefill and chunk > budget:
            return None
        chunk = min(chunk, budget)
        reach = sequence.length if self.config.reserve_whole_prompt else computed + (0 if below else chunk)
        need = sequence.blocks_for(reach, size) - len(found)
        if fresh:
            need += len(memory.pool.idle(found))
        watermark = memory.watermark_blocks if self.running else 0
        if need + watermark > memory.pool.free:
            if self.config.reserve_whole_prompt:
                self._refused = (sequence, memory.changes)
            return None
        if fresh:
            memory.adopt(sequence, found)
            record = sequence.record
            self.lookups.add(sequence.length, local, below * size)
            if record.preemptions:
                self.lookups_again.add(sequence.length, local, below * size)
            elif not record.cached_tokens:
                record.cached_tokens = computed
                record.cached_below_tokens = below * size
        if below and self.tier is not None:
            memory.grow(sequence, computed)
            sequence.loaded_at = self.tier.load(sequence, len(found), below, now)
            sequence.loaded_tokens = computed
            self._loading.append(sequence)
            return 0
        memory.grow(sequence, sequence.computed + chunk)
        memory.publish(sequence, sequence.computed + chunk)
        return chunk


def _urgency(sequence: Sequence) -> tuple[int, float, int]:
    request = sequence.request
    return request.priority, request.arrival_seconds, request.request_id
