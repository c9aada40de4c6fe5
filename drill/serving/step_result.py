"""What an engine tells of its iterations."""

from __future__ import annotations

from dataclasses import dataclass, field

from drill.serving.request import Outcome, PreemptionMode, Record
from drill.serving.sequences import Lookups


@dataclass(slots=True)
class StepResult:
    """One iteration, or several alike (``iterations``) that nothing happened between.

    Bytes over links are of one GPU; ``swap_*_bytes`` are of all GPUs and of V0's swapping only, what V1's
    tier moves is in ``tier_*_bytes``, of all GPUs as well. ``token_intervals``: (seconds, how many), a gap
    between two tokens of one sequence each, in the order of time. ``sm_busy_ratio`` and
    ``memory_busy_ratio``: shares of the time in which SMs compute and of peak bandwidth.
    """

    started_seconds: float
    seconds: float
    iterations: int = 1
    decode_tokens: int = 0
    """Tokens computed one by one in decodes."""
    prefill_tokens: int = 0
    """Tokens computed in prefills, recomputed ones included."""
    recomputed_tokens: int = 0
    generated_tokens: int = 0
    first_tokens: list[Record] = field(default_factory=list)
    """Requests that yielded their first token at the end."""
    finished: list[Record] = field(default_factory=list)
    """Requests that ended: at the end of the iteration, or, aborted, before it."""
    preempted: list[tuple[Record, PreemptionMode]] = field(default_factory=list)
    repeat_preemptions: int = 0
    """Those of them that had been preempted before."""
    reported_preemptions: int = 0
    """Preemptions that outputs carried to the front end: what V1's counter rises by."""
    token_intervals: list[tuple[float, int]] = field(default_factory=list)
    recomputed_intervals: list[float] = field(default_factory=list)
    """Those of the gaps that the recomputation of a preempted sequence ended, one a sequence."""
    prefix_queried_tokens: int = 0
    prefix_hit_tokens: int = 0
    tier_hit_tokens: int = 0
    prefix_queried_again_tokens: int = 0
    """Those of them looked up for sequences that had been preempted; so the two below."""
    prefix_hit_again_tokens: int = 0
    tier_hit_again_tokens: int = 0
    swap_in_blocks: int = 0
    swap_out_blocks: int = 0
    swap_in_bytes: float = 0.0
    swap_out_bytes: float = 0.0
    tier_load_bytes: float = 0.0
    tier_store_bytes: float = 0.0
    tier_loads: list[int] = field(default_factory=list)
    """Blocks of each transfer from the tier that came to its end; so ``tier_stores`` to it."""
    tier_stores: list[int] = field(default_factory=list)
    tier_loading_blocks: int = 0
    """Blocks of transfers that haven't, at the end of the iteration."""
    tier_storing_blocks: int = 0
    to_device_bytes: float = 0.0
    to_host_bytes: float = 0.0
    nvlink_bytes: float = 0.0
    """In each direction."""
    copy_seconds: float = 0.0
    collective_seconds: float = 0.0
    sm_busy_ratio: float = 0.0
    memory_busy_ratio: float = 0.0
    died: str | None = None
    """Why the engine is no more; the requests it lost are in ``finished``."""

    def count_lookups(self, looked: Lookups, again: Lookups) -> None:
        """What was looked up in the prefix cache; ``again``: those of it for sequences that had been preempted."""
        self.prefix_queried_tokens, self.prefix_hit_tokens = looked.queried, looked.found
        self.tier_hit_tokens = looked.found_below
        self.prefix_queried_again_tokens, self.prefix_hit_again_tokens = again.queried, again.found
        self.tier_hit_again_tokens = again.found_below


@dataclass(slots=True)
class Totals:
    """Sums since the engine started: the truth, whatever it would expose."""

    iterations: int = 0
    generated_tokens: int = 0
    prefill_tokens: int = 0
    recomputed_tokens: int = 0
    preemptions: int = 0
    repeat_preemptions: int = 0
    swap_in_blocks: int = 0
    swap_out_blocks: int = 0
    outcomes: dict[Outcome, int] = field(default_factory=dict)

    def add(self, result: StepResult) -> None:
        """One more result."""
        self.iterations += result.iterations
        self.generated_tokens += result.generated_tokens
        self.prefill_tokens += result.prefill_tokens
        self.recomputed_tokens += result.recomputed_tokens
        self.preemptions += len(result.preempted)
        self.repeat_preemptions += result.repeat_preemptions
        self.swap_in_blocks += result.swap_in_blocks
        self.swap_out_blocks += result.swap_out_blocks
        for record in result.finished:
            if record.outcome is not None:
                self.outcomes[record.outcome] = self.outcomes.get(record.outcome, 0) + 1


@dataclass(frozen=True, slots=True)
class Gauges:
    """The engine at the end of its last iteration."""

    running: int
    waiting: int
    deferred: int
    """Of those waiting: they wait for blocks from the tier below."""
    swapped: int
    used_blocks: int
    usable_blocks: int
    host_used_blocks: int
    host_blocks: int

    @property
    def usage_ratio(self) -> float:
        """Share of usable blocks that sequences hold."""
        return self.used_blocks / self.usable_blocks
