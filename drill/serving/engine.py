"""A model of one serving engine, iteration by iteration, on a clock of its own. See docs/drill.md.

    engine = Engine(EngineConfig(...))
    engine.submit(Request(...))
    while (result := engine.step(until=60.0)) is not None:
        ...

Everything is decided by what is submitted: the same calls give the same results, bit for bit.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping
from itertools import chain

from drill.serving.config import EngineConfig, Generation
from drill.serving.flight import Flight, land
from drill.serving.kv_memory import KvMemory
from drill.serving.offload import OffloadTier
from drill.serving.request import Outcome, Record, Request
from drill.serving.scheduler_v0 import SchedulerV0
from drill.serving.scheduler_v1 import SchedulerV1
from drill.serving.sequences import Lookups, Sequence
from drill.serving.step_result import Gauges, StepResult, Totals
from drill.serving.step_time import StepCost, StepTimer
from drill.serving.stretch import Pace, longest_stretch, stretch_seconds


class Engine:
    """One replica. ``timer`` replaces the roofline; ``fast`` off makes it take each iteration by itself."""

    def __init__(self, config: EngineConfig, timer: StepTimer | None = None, *, fast: bool = True) -> None:
        self.config = config
        self.timer: StepTimer = timer if timer is not None else config.roofline()
        self.fast = fast
        self.now = 0.0
        """End of the last iteration that is done."""
        self.dead: str | None = None
        self.totals = Totals()
        self.memory = KvMemory(
            config.usable_blocks,
            config.block_tokens,
            config.watermark_blocks,
            caching=config.prefix_caching,
        )
        self.tier: OffloadTier | None = None
        if config.offload_bytes:
            self.tier = OffloadTier(
                int(config.offload_bytes / config.block_bytes),
                config.block_bytes_gpu,
                config.offload_bytes_per_second,
                config.block_tokens,
            )
        self.scheduler: SchedulerV0 | SchedulerV1
        if config.generation is Generation.V0:
            self.scheduler = SchedulerV0(config, self.memory, config.host_blocks)
        else:
            self.scheduler = SchedulerV1(config, self.memory, self.tier)
        self._inbox: deque[Request] = deque()
        self._aborts: list[tuple[float, int]] = []
        self._sequences: dict[int, Sequence] = {}
        self._pending: set[int] = set()
        self._gone: list[Record] = []
        """Ended since the last result."""
        self._flight: Flight | None = None
        self._wakes = math.inf
        """When it has to be looked at again, where nothing is under way."""
        self._block_bytes = config.block_bytes
        self._gauges = self._read_gauges()

    def submit(self, request: Request) -> None:
        """Take a request that arrives at its own time, not before one submitted earlier. Raises ValueError."""
        if self._inbox and request.arrival_seconds < self._inbox[-1].arrival_seconds:
            raise ValueError(
                f"request {request.request_id} arrives at {request.arrival_seconds} s, before one submitted "
                f"earlier ({self._inbox[-1].arrival_seconds} s): sort them"
            )
        longest = self.config.max_model_tokens
        if request.prompt_tokens + request.output_tokens > longest:
            raise ValueError(
                f"request {request.request_id} has {request.prompt_tokens} tokens and asks for "
                f"{request.output_tokens}: more than the {longest} that the engine takes (max_model_tokens)"
            )
        if request.request_id in self._pending or request.request_id in self._sequences:
            raise ValueError(f"request {request.request_id} is in the engine already")
        if request.sequences > 1 and self.config.generation is Generation.V1:
            raise ValueError(f"request {request.request_id}: V1 makes n requests of one, submit them so")
        self._inbox.append(request)
        self._pending.add(request.request_id)
        if request.abort_seconds is not None:
            self.abort(request.request_id, request.abort_seconds)

    def abort(self, request_id: int, at: float | None = None) -> None:
        """Its client leaves at that time (None: now); it ends before the next iteration, if it hasn't."""
        heapq.heappush(self._aborts, (self.now if at is None else at, request_id))

    def gauges(self) -> Gauges:
        """The engine at the end of its last iteration: what it would expose until the next one ends."""
        return self._gauges

    def queued(self) -> tuple[int, int]:
        """Requests that wait, the submitted ones that have arrived or will included, and that run, now."""
        scheduler = self.scheduler
        return len(scheduler.waiting) + len(scheduler.swapped) + len(self._inbox), len(scheduler.running)

    def has(self, request_id: int) -> bool:
        """Whether a request is in it, one that the scheduler doesn't know yet included."""
        return request_id in self._sequences or request_id in self._pending

    def records(self) -> list[Record]:
        """Of the requests that are in the engine, in the order in which they came."""
        return [one.record for one in self._sequences.values()]

    def sequences(self) -> Mapping[int, Sequence]:
        """The requests that are in the engine, by id, as it works on them. To be read only."""
        return self._sequences

    def leak(self, blocks: int) -> None:
        """So many blocks, held by nobody, are never free again. ``step`` up to now comes first. Raises ValueError."""
        self.memory.pool.take(blocks)
        self._gauges = self._read_gauges()

    def unfilled_slots(self) -> int:
        """Token slots in blocks that sequences hold that no token is in, now: the tail waste, and prompts to come."""
        size = self.config.block_tokens
        return sum(one.held * size - one.filled_slots(size) for one in self._sequences.values() if one.held)

    def holdings(self) -> dict[int, tuple[int, ...]]:
        """Which blocks each request holds."""
        return {
            key: tuple(one.table[: one.held].tolist()) for key, one in self._sequences.items() if one.held
        }

    @property
    def in_flight_until(self) -> float | None:
        """When the iteration under way ends; None: none is."""
        return None if self._flight is None else self._flight.ends

    @property
    def under_way(self) -> Flight | None:
        """The iterations under way; None: none are."""
        return self._flight

    def look(self, until: float = math.inf) -> float:
        """When the next result will come; infinite: none by ``until``.

        Should something be submitted or aborted before, ``step`` up to then comes first. Who waits for an abort or a
        copy may be overtaken until then: nothing has begun, and it is told when to ``step``.
        """
        if self._flight is None and self.dead is None:
            self._flight = self._begin(until, ahead=True)
        return self._wakes if self._flight is None else self._flight.ends

    def step(self, until: float = math.inf) -> StepResult | None:
        """Finish the next iteration, or several alike, if it ends by ``until``; None: all else is still under way."""
        if self._flight is None and self.dead is None:
            self._flight = self._begin(until, ahead=False)
        flight = self._flight
        if flight is None or (flight.ends > until and not flight.cut(until)):
            return None
        self._flight = None
        return self._land(flight)

    def stand_still(self, since: float, until: float) -> None:
        """Nothing happened between: what was under way goes on then. ``step`` up to ``since`` comes first."""
        if self._flight is None:
            self.now = max(self.now, until)
        else:
            self._flight.started += until - since
            self._flight.ends += until - since

    def _begin(self, until: float, *, ahead: bool) -> Flight | None:
        """Decide the next iteration at the earliest instant that has one to offer; ``ahead``: that is known by now."""
        now = self.now
        self._wakes = math.inf
        while True:
            self._receive(now)
            plan = self.scheduler.schedule(now)
            if self._gone or not plan.empty:
                break
            event = self._next_event(now, arrivals=True)
            if event > until or math.isinf(event):
                return None
            if ahead and not (self._inbox and self._inbox[0].arrival_seconds <= event):
                self._wakes = event
                return None
            now = event
        if plan.died or plan.empty:
            return Flight(plan, StepCost(0.0), 0.0, 0, now, now)
        copying = self.tier.busy_seconds(now) if self.tier is not None else 0.0
        batch = plan.batch()
        cost = self.timer.cost(batch, copying)
        iterations, rise = 1, 0.0
        if self.fast and plan.steady and not (cost.collective_pcie and copying > 0):
            rise = self.timer.rise(batch)
            event = self._next_event(now, arrivals=self.scheduler.arrivals_matter())
            pace = Pace(cost.seconds, rise, event - now, until - now)
            # V0 wants a block at hand for each that decodes, whether it has room or not
            v0 = self.config.generation is Generation.V0
            kept = max((one.members for one in plan.decodes), default=1) if v0 else 0
            spare = self.memory.pool.free - kept
            iterations = longest_stretch(plan, self.config.block_tokens, spare, pace)
        return Flight(
            plan, cost, rise, iterations, now, now + stretch_seconds(cost.seconds, rise, iterations)
        )

    def _receive(self, now: float) -> None:
        """Arrivals and aborts that are due."""
        while self._inbox and self._inbox[0].arrival_seconds <= now:
            request = self._inbox.popleft()
            self._pending.discard(request.request_id)
            sequence = Sequence(request, now)
            self._sequences[request.request_id] = sequence
            self.scheduler.add(sequence)
        while self._aborts and self._aborts[0][0] <= now:
            when, request_id = heapq.heappop(self._aborts)
            left = self._sequences.get(request_id)
            if left is not None:
                self._end(left, Outcome.ABORT, now)
            elif request_id in self._pending:  # it left before it came: it will be dropped on arrival
                comes = next(each.arrival_seconds for each in self._inbox if each.request_id == request_id)
                heapq.heappush(self._aborts, (max(when, comes), request_id))

    def _next_event(self, now: float, *, arrivals: bool) -> float:
        """When something comes that the scheduler has to see; infinite: nothing will."""
        event = math.inf
        if arrivals and self._inbox:
            event = self._inbox[0].arrival_seconds
        aborts = self._aborts
        while aborts and aborts[0][1] not in self._sequences and aborts[0][1] not in self._pending:
            heapq.heappop(aborts)
        if aborts:
            event = min(event, aborts[0][0])
        return min(event, self.scheduler.timer(now))

    def _land(self, flight: Flight) -> StepResult:
        """What the iterations under way come to."""
        self.now = flight.ends
        plan = flight.plan
        if flight.iterations > 1:
            self.memory.grow_all(chain(plan.decodes, plan.prefills), flight.iterations)
        result, done = land(flight, self._block_bytes, self.config.gpu.memory_bytes_per_second)
        result.count_lookups(self.scheduler.lookups, self.scheduler.lookups_again)
        self.scheduler.lookups, self.scheduler.lookups_again = Lookups(), Lookups()
        if self.tier is not None:
            loaded, stored = self.tier.settle(self.now)
            result.tier_loads, result.tier_stores = self.tier.ended()
            result.tier_load_bytes = loaded * self._block_bytes
            result.tier_store_bytes = stored * self._block_bytes
            result.to_device_bytes += result.tier_load_bytes / self.config.tensor_parallel
            result.to_host_bytes += result.tier_store_bytes / self.config.tensor_parallel
            for sequence in chain(plan.decodes, plan.prefills):
                self.tier.store(sequence, self.now)
            result.tier_loading_blocks, result.tier_storing_blocks = self.tier.pending()
        if flight.iterations > 1:
            for sequence in plan.prefills:
                self.memory.publish(sequence, sequence.computed)
        for sequence in done:
            self._end(sequence, Outcome.LENGTH, self.now)
        for sequence in plan.ignored:
            self._end(sequence, Outcome.IGNORED, self.now)
        if plan.died is not None:
            self.dead = plan.died
            for sequence in list(self._sequences.values()):
                self._end(sequence, Outcome.LOST, self.now)
        result.finished, self._gone = self._gone, []
        self.totals.add(result)
        self._gauges = self._read_gauges()
        return result

    def _end(self, sequence: Sequence, outcome: Outcome, now: float) -> None:
        del self._sequences[sequence.request.request_id]
        self.scheduler.remove(sequence)
        record = sequence.record
        record.outcome = outcome
        record.finished_seconds = now
        record.last_token_seconds = sequence.last_token
        record.generated_tokens = sequence.length - sequence.prompt
        self._gone.append(record)

    def _read_gauges(self) -> Gauges:
        scheduler, pool = self.scheduler, self.memory.pool
        host = scheduler.host_blocks if isinstance(scheduler, SchedulerV0) else 0
        free = scheduler.host_free if isinstance(scheduler, SchedulerV0) else 0
        return Gauges(
            running=len(scheduler.running),
            waiting=len(scheduler.waiting),
            deferred=scheduler.deferred,
            swapped=len(scheduler.swapped),
            used_blocks=pool.used,
            usable_blocks=pool.blocks,
            host_used_blocks=host - free,
            host_blocks=host,
        )
