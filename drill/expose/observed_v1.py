"""What V1's metrics code counts, and when (vllm/v1/metrics/stats.py and loggers.py, 0.8.5 to 0.33)."""

from __future__ import annotations

from drill.expose.buckets import Buckets
from drill.expose.observed import Observed, Served
from drill.expose.release import Bounds, bounds_of
from drill.serving.config import EngineConfig
from drill.serving.request import Record
from drill.serving.step_result import Gauges, StepResult


class Transfers:
    """What went one way between the GPUs and the tier below, transfer by transfer as each ends.

    Each GPU has its own part of a transfer, which vLLM counts by itself.
    """

    def __init__(self, config: EngineConfig, bounds: Bounds) -> None:
        self._gpus = config.tensor_parallel
        self._block_bytes = config.block_bytes_gpu
        self._rate = config.offload_bytes_per_second
        self.bytes_total = 0.0
        self.seconds_total = 0.0
        self.sizes = Buckets(bounds.transfer_bytes)
        self.chunks = Buckets(bounds.chunks)
        self.first_at: float | None = None
        """End of the first one, on the drill's clock."""
        self.pending_blocks = 0

    def see(self, transfers: list[int], pending_blocks: int, now: float) -> None:
        """Blocks of each transfer that ended."""
        self.pending_blocks = pending_blocks
        if transfers and self.first_at is None:
            self.first_at = now
        for blocks in transfers:
            size = blocks * self._block_bytes
            self.bytes_total += size * self._gpus
            self.seconds_total += size / self._rate * self._gpus
            self.sizes.observe(size, self._gpus)
            self.chunks.observe(blocks)


class ObservedV1(Observed):
    """V1: prompt tokens are counted whole, with the first token; each gap between tokens as it ends.

    A preemption is counted when the next output of its request comes; where a client aborts before that, never.
    Lookups of preempted requests count up to 0.11.1. An iteration without an output is none.
    """

    def __init__(self, served: Served, gauges: Gauges) -> None:
        super().__init__(served, gauges)
        bounds = bounds_of(served.release, served.config.max_model_tokens)
        self.prompt_local_tokens = 0
        """Of the prompts that yielded a first token: found in the prefix cache."""
        self.prompt_external_tokens = 0
        """Of those, found in the tier below."""
        self.prefix_queries = 0
        self.prefix_hits = 0
        self.external_queries = 0
        self.external_hits = 0
        self.loads = Transfers(served.config, bounds)
        self.stores = Transfers(served.config, bounds)
        self.request_time_per_output_token = Buckets(bounds.token)
        self.request_preemptions = Buckets(bounds.preemptions)
        self.request_computed_tokens = Buckets(bounds.lengths)
        self.computed_tokens = 0
        """Recomputed ones included."""
        self.read_bytes = 0.0
        """From the memory of each GPU."""
        self._counts_again = not served.release.in_range((0, 11, 2), None)
        self._counts_cached = not served.release.in_range((0, 16), None)

    def see(self, result: StepResult, gauges: Gauges) -> None:
        """See Observed."""
        super().see(result, gauges)
        prompt = cached = external = 0
        for record in result.first_tokens:
            prompt += record.request.prompt_tokens
            cached += record.cached_tokens
            external += record.cached_below_tokens
        self.prompt_tokens += prompt
        self.prompt_local_tokens += cached - external
        self.prompt_external_tokens += external
        self.preemptions += result.reported_preemptions
        for seconds, times in result.token_intervals:
            self.inter_token_latency.observe(seconds, times)
        if result.generated_tokens:
            prompt -= 0 if self._counts_cached else cached
            each = result.generated_tokens / result.iterations + prompt
            self.iteration_tokens.observe(each, result.iterations)
        self._see_lookups(result)
        self.loads.see(result.tier_loads, result.tier_loading_blocks, self.updated)
        self.stores.see(result.tier_stores, result.tier_storing_blocks, self.updated)
        self.computed_tokens += result.prefill_tokens + result.decode_tokens
        self.read_bytes += result.memory_busy_ratio * result.seconds * self.config.gpu.memory_bytes_per_second

    @property
    def matrix_flops(self) -> float:
        """Of each GPU, in matrix products; attention is left out."""
        model = self.config.model
        layer = model.attention_values + model.feed_forward_values * max(1, model.active_experts)
        products = model.layers * layer * self.computed_tokens + model.head_values * self.generation_tokens
        return 2.0 * products / self.config.tensor_parallel

    def _see_lookups(self, result: StepResult) -> None:
        queried, hit = result.prefix_queried_tokens, result.prefix_hit_tokens
        below = result.tier_hit_tokens
        if not self._counts_again:
            queried -= result.prefix_queried_again_tokens
            hit -= result.prefix_hit_again_tokens
            below -= result.tier_hit_again_tokens
        self.prefix_queries += queried
        self.prefix_hits += hit
        if self.config.offload_bytes:
            self.external_queries += queried - hit
            self.external_hits += below

    def _finish(self, record: Record, now: float) -> None:
        super()._finish(record, now)
        scheduled = record.scheduled_seconds
        if scheduled is not None:
            self.queue_time.observe(scheduled - record.queued_seconds)
        # a request of one token has no gap: 0 is what vLLM observes then
        self.request_time_per_output_token.observe(record.time_per_output_token_seconds or 0.0)
        self.request_preemptions.observe(len(record.preemptions))
        self.request_computed_tokens.observe(record.request.prompt_tokens - record.cached_tokens)
