"""What V0's metrics code counts, and when (vllm/engine/llm_engine.py ``_get_stats`` and metrics.py, 0.6 to 0.8.5)."""

from __future__ import annotations

from drill.expose.observed import Observed
from drill.serving.request import Record
from drill.serving.step_result import Gauges, StepResult


class ObservedV0(Observed):
    """V0: preemptions are counted as they are decided, prompt tokens chunk by chunk, recomputed ones again.

    The token that ends a recomputation counts as a first token, as late as its gap. What can never fit
    (``Outcome.IGNORED``) is counted nowhere: it was in no iteration. There is no counter of swapped bytes.
    """

    prefix_queries = 0
    prefix_hits = 0

    def see(self, result: StepResult, gauges: Gauges) -> None:
        """See Observed."""
        super().see(result, gauges)
        prompt = result.prefill_tokens + result.prefix_hit_tokens
        self.prompt_tokens += prompt
        self.preemptions += len(result.preempted)
        self.prefix_queries += result.prefix_queried_tokens
        self.prefix_hits += result.prefix_hit_tokens
        recomputed = list(result.recomputed_intervals)
        for gap in recomputed:
            self.time_to_first_token.observe(gap)
        for seconds, times in result.token_intervals:
            again = recomputed.count(seconds) if recomputed else 0
            if times > again:
                self.inter_token_latency.observe(seconds, times - again)
            recomputed = [gap for gap in recomputed if gap != seconds] if again else recomputed
        if result.seconds > 0:
            each = (prompt + result.generated_tokens) / result.iterations
            self.iteration_tokens.observe(each, result.iterations)

    @property
    def prefix_hit_ratio(self) -> float:
        """-1 where it keeps no prefixes."""
        if not self.config.prefix_caching:
            return -1.0
        return self.prefix_hits / self.prefix_queries if self.prefix_queries else 0.0

    def _finish(self, record: Record, now: float) -> None:
        super()._finish(record, now)
        scheduled = record.scheduled_seconds
        if scheduled is not None:
            self.queue_time.observe(scheduled - record.request.arrival_seconds)
