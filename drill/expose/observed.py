"""What the metrics code of one engine has seen so far, and what it hasn't: its lags and blind spots.

It is fed with what the engine's iterations came to, and knows no more than vLLM's own code would: gauges as of the
last iteration that ended, requests once they finish, and nothing of those that clients aborted. What V0 and V1 do
differently is in ``observed_v0.py`` and ``observed_v1.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from drill.expose.buckets import Buckets
from drill.expose.release import Release, bounds_of
from drill.serving.config import EngineConfig
from drill.serving.request import Outcome, Record
from drill.serving.step_result import Gauges, StepResult


@dataclass(frozen=True, slots=True)
class Served:
    """An engine as it is started: ``started_seconds`` on the drill's clock, whose 0 is ``epoch`` (since the epoch).

    Raises UnknownReleaseError where the release hasn't that generation of the engine.
    """

    config: EngineConfig
    release: Release
    model_name: str
    epoch: float
    started_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.release.check(self.config.generation)

    @property
    def started_at(self) -> float:
        """Seconds since the epoch."""
        return self.epoch + self.started_seconds


class Observed:
    """One engine, or one rank of it, since it started.

    ``gauges`` are the engine's before its first iteration. Counters are vLLM's of the same names.
    """

    def __init__(self, served: Served, gauges: Gauges) -> None:
        self.served = served
        self.config = served.config
        self.gauges = gauges
        self.updated = served.started_seconds
        """End of the last iteration, on the drill's clock."""
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.preemptions = 0
        self.finished = 0
        """Requests that yielded all their tokens: ``length`` is the one reason that the model knows."""
        bounds = bounds_of(served.release, served.config.max_model_tokens)
        self.time_to_first_token = Buckets(bounds.first_token)
        self.inter_token_latency = Buckets(bounds.token)
        self.end_to_end_latency = Buckets(bounds.request)
        self.queue_time = Buckets(bounds.request)
        self.inference_time = Buckets(bounds.request)
        self.prefill_time = Buckets(bounds.request)
        self.decode_time = Buckets(bounds.request)
        self.request_prompt_tokens = Buckets(bounds.lengths)
        self.request_generation_tokens = Buckets(bounds.lengths)
        self.request_longest_tokens = Buckets(bounds.lengths)
        self.request_max_tokens = Buckets(bounds.lengths)
        self.request_n = Buckets(bounds.counts)
        self.iteration_tokens = Buckets(bounds.iteration)

    def see(self, result: StepResult, gauges: Gauges) -> None:
        """One more result, and the engine's gauges after it."""
        self.gauges = gauges
        self.updated = now = result.started_seconds + result.seconds
        self.generation_tokens += result.generated_tokens
        for record in result.first_tokens:
            self.time_to_first_token.observe(now - record.request.arrival_seconds)
        for record in result.finished:
            if record.outcome is Outcome.LENGTH:
                self._finish(record, now)

    def _finish(self, record: Record, now: float) -> None:
        """Times of a request are counted when it ends; of one that a client aborted never."""
        request = record.request
        first, last = record.first_token_seconds, record.last_token_seconds
        scheduled = record.scheduled_seconds
        if first is None or last is None or scheduled is None:
            raise ValueError(f"request {request.request_id} finished without a token")
        self.finished += request.sequences
        self.end_to_end_latency.observe(now - request.arrival_seconds)
        self.inference_time.observe(last - scheduled)
        self.prefill_time.observe(first - scheduled)
        self.decode_time.observe(last - first)
        self.request_prompt_tokens.observe(request.prompt_tokens)
        self.request_generation_tokens.observe(record.generated_tokens, request.sequences)
        self.request_longest_tokens.observe(record.generated_tokens)
        self.request_max_tokens.observe(request.output_tokens)
        self.request_n.observe(request.sequences)
