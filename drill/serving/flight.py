"""Iterations under way, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass

from drill.serving.sequences import Plan, Sequence
from drill.serving.step_result import StepResult
from drill.serving.step_time import StepCost
from drill.serving.stretch import most_within, stretch_seconds


@dataclass(slots=True)
class Flight:
    """``iterations`` alike, decided but not done: the first costs ``cost``, each further one ``rise`` seconds more."""

    plan: Plan
    cost: StepCost
    rise: float
    iterations: int
    started: float
    ends: float

    @property
    def pcie_bytes(self) -> tuple[float, float]:
        """Of one GPU, towards it and from it, in all iterations; what the tier below moves is not among it."""
        reduced = self.cost.collective_bytes * self.iterations if self.cost.collective_pcie else 0.0
        return self.cost.to_device_bytes + reduced, self.cost.to_host_bytes + reduced

    @property
    def nvlink_bytes(self) -> float:
        """Of one GPU, in each direction, in all iterations."""
        return 0.0 if self.cost.collective_pcie else self.cost.collective_bytes * self.iterations

    @property
    def sm_busy_ratio(self) -> float:
        """Share of the time in which SMs compute."""
        seconds = self.ends - self.started
        # contexts grow: attention takes longer
        grown = seconds - self.cost.seconds * self.iterations
        busy = self.cost.busy_seconds * self.iterations + grown
        return min(1.0, busy / seconds) if seconds > 0 else 0.0

    def memory_busy_ratio(self, bytes_per_second: float) -> float:
        """Share of the memory's bandwidth that is used."""
        seconds = self.ends - self.started
        moved = self.cost.memory_bytes * self.iterations
        return min(1.0, moved / seconds / bytes_per_second) if seconds > 0 else 0.0

    def cut(self, until: float) -> bool:
        """Only the iterations that are done by then; where none is, the one under way alone, and False."""
        if self.iterations == 1:
            return False
        first, rise = self.cost.seconds, self.rise
        done = most_within(first, rise, until - self.started, self.iterations)
        self.iterations = max(1, done)
        self.ends = self.started + stretch_seconds(first, rise, self.iterations)
        return done > 0


def land(
    flight: Flight, block_bytes: float, memory_bytes_per_second: float
) -> tuple[StepResult, list[Sequence]]:
    """What came of it, and the sequences that yielded their last token. Their state moves on."""
    plan, cost, times = flight.plan, flight.cost, flight.iterations
    seconds = flight.ends - flight.started
    to_device, to_host = flight.pcie_bytes
    result = StepResult(
        flight.started,
        seconds,
        times,
        swap_in_blocks=plan.swap_in_blocks,
        swap_out_blocks=plan.swap_out_blocks,
        swap_in_bytes=plan.swap_in_blocks * block_bytes,
        swap_out_bytes=plan.swap_out_blocks * block_bytes,
        to_device_bytes=to_device,
        to_host_bytes=to_host,
        nvlink_bytes=flight.nvlink_bytes,
        copy_seconds=cost.copy_seconds,
        collective_seconds=cost.collective_seconds * times,
        sm_busy_ratio=flight.sm_busy_ratio,
        memory_busy_ratio=flight.memory_busy_ratio(memory_bytes_per_second),
        died=plan.died,
    )
    for sequence, mode in plan.preempted:
        record = sequence.record
        result.repeat_preemptions += bool(record.preemptions)
        record.preemptions.append((flight.started, mode))
        sequence.unreported += 1
        result.preempted.append((record, mode))
    yielding = [one for one in plan.prefills if _prefill(one, flight, result)]
    for one in plan.decodes:
        one.computed += times
        one.length += times
        result.decode_tokens += one.members
    result.decode_tokens *= times
    yielding += plan.decodes
    _count_tokens(yielding, flight, result)
    return result, [one for one in yielding if one.length >= one.final]


def _prefill(sequence: Sequence, flight: Flight, result: StepResult) -> bool:
    """A chunk of a prompt, or of a preempted sequence, is computed; whether it was the last."""
    record = sequence.record
    if record.scheduled_seconds is None:
        record.scheduled_seconds = flight.started
    computed = sequence.chunk * flight.iterations
    again = max(0, min(sequence.furthest, sequence.computed + computed) - sequence.computed)
    result.prefill_tokens += computed
    result.recomputed_tokens += again
    record.computed_tokens += computed
    record.recomputed_tokens += again
    sequence.computed += computed
    if sequence.computed < sequence.length:
        return False
    sequence.length += 1
    if record.first_token_seconds is None:
        record.first_token_seconds = flight.ends
        result.first_tokens.append(record)
    return True


def _count_tokens(yielding: list[Sequence], flight: Flight, result: StepResult) -> None:
    """Gaps between tokens: each sequence's first since its last token, then one an iteration."""
    first_end, ends = flight.started + flight.cost.seconds, flight.ends
    gaps: dict[float, int] = {}
    tokens = 0
    for sequence in yielding:
        last = sequence.last_token
        if last is not None:
            gap = first_end - last
            gaps[gap] = gaps.get(gap, 0) + sequence.members
            if sequence.chunk > 1:  # a decode computes one token
                result.recomputed_intervals.append(gap)
        sequence.last_token = ends
        tokens += sequence.members
        if sequence.unreported:
            result.reported_preemptions += sequence.unreported
            sequence.unreported = 0
    result.generated_tokens = tokens * flight.iterations
    result.token_intervals = list(gaps.items())
    pace, rise = flight.cost.seconds, flight.rise
    result.token_intervals += [(pace + rise * index, tokens) for index in range(1, flight.iterations)]
