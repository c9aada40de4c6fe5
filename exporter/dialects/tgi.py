"""Reads Text Generation Inference's own metrics.

Read at huggingface/text-generation-inference db931fcf (its router and both back ends). Traps:

- Counters have no ``_total``; a label set shows up with its first observation, so an absent ``err`` is no zero.
- Most histograms and the generated tokens are told when a request ends; input lengths when it is accepted.
- There is no KV metric. A request is admitted once all the tokens it may ever hold fit
  ``tgi_batch_max_total_tokens`` (newer releases, back end v3), so the budget of the running batch over that is
  the share of the cache that is taken; nothing is ever preempted, overload is a queue and ``err="overloaded"``.
- Old releases expose summaries: series with a ``quantile`` label, which are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from exporter.dialects.cells import (
    Cells,
    Slot,
    facts_of,
    gathered,
    one,
    read_as,
    share,
    slot_of,
    told_by,
    total_of,
)
from exporter.dialects.names import Kind, Name, Table, histogram, names
from exporter.exposition import Series
from exporter.sample import EngineSample, Histogram, RankSample

BUDGET = Name("budget", Kind.COUNT, "batch_current_max_tokens")
CAPACITY = Name("capacity", Kind.COUNT, "batch_max_total_tokens")
SUCCESS = Name("success", Kind.COUNTER, "request_success")
FAILURE = Name("failure", Kind.COUNTER, "request_failure", by="err")
STEPS = Name("steps", Kind.COUNTER, "batch_inference_count")
GENERATED = "request_generated_tokens"

TABLE = Table.of(
    r"^tgi_",
    chain(
        names("running", Kind.COUNT, "batch_current_size"),
        names("waiting", Kind.COUNT, "queue_size"),
        histogram("end_to_end_latency", "request_duration"),
        histogram("queue_time", "request_queue_duration"),
        histogram("request_time_per_output_token", "request_mean_time_per_token_duration"),
        histogram("request_prompt_tokens", "request_input_length"),
        histogram("request_generation_tokens", GENERATED),
    ),
    (BUDGET, CAPACITY, SUCCESS, FAILURE, STEPS),
)

DROPPED, OVERLOADED = "dropped", "overloaded"
ENDED_BADLY = ("generation", "incomplete")
"""Failures of requests that had been taken in; the others never were."""

ABSENCES = (
    (
        "kv_usage_ratio",
        "told from the token budget, which newer releases expose, with TGI's own back end (v3)",
    ),
    ("blocks", "TGI tells its KV cache in tokens only"),
    ("block_tokens", "TGI tells its KV cache in tokens only"),
    ("block_group_tokens", "TGI tells its KV cache in tokens only"),
    ("generation_tokens_total", "a request's tokens are counted when it ends"),
    ("time_to_first_token", "TGI has no such histogram"),
    ("inter_token_latency", "TGI has no such histogram, only a mean a request"),
    ("request_preemptions", "TGI never preempts: what it admits fits"),
    ("preemptions_total", "TGI never preempts: what it admits fits"),
    ("swapped", "TGI never swaps"),
    ("swap_mode", "TGI never swaps"),
    ("swap_tier_bytes", "TGI never swaps"),
    ("swap_in_bytes_total", "TGI never swaps"),
    ("swap_in_blocks_total", "TGI never swaps"),
    ("swap_tier_usage_ratio", "TGI never swaps"),
    ("prefix_hits_total", "TGI counts no prefix hits"),
    ("waiting_by_reason", "what waits, waits for its token budget"),
    ("aborted_total", "counted from the first client that leaves"),
    ("admission_rejections_total", "counted from the first request that is refused"),
)


class TgiDialect:
    """One router, one rank; no label says which model it serves."""

    kind = "tgi"
    title = "Text Generation Inference"
    absences = ABSENCES

    def recognises(self, names: Collection[str]) -> bool:
        """Whether any of the names is one we read under TGI's prefix."""
        return any(TABLE.spellings(name) for name in names)

    def interpret(self, series: Series) -> Slot | None:
        """What one series means."""
        found = read_as(TABLE, series)
        if found is None:
            return None
        name, detail, labels = found
        return None if "quantile" in labels else slot_of("", name, detail, labels)

    def sample(
        self, readings: Sequence[tuple[Slot, float]], *, engine: str, at: float, read_seconds: float
    ) -> EngineSample:
        """One read."""
        notes: set[str] = set()
        cells: Cells = gathered(readings, notes).get("", {})
        failures = dict(told_by(cells, FAILURE) or ())
        ranks = (_rank(cells, failures, at, notes),) if cells else ()
        overloaded = failures.get(OVERLOADED)
        return EngineSample(
            at,
            engine,
            self.kind,
            ranks,
            read_seconds=read_seconds,
            aborted_total=failures.get(DROPPED),
            admission_rejections_total=() if overloaded is None else ((OVERLOADED, overloaded),),
            notes=tuple(sorted(notes)),
        )


def _rank(cells: Cells, failures: Mapping[str, float], at: float, notes: set[str]) -> RankSample:
    facts = facts_of(TABLE, cells, notes)
    prompts: Histogram | None = facts.get("request_prompt_tokens")
    answers: Histogram | None = facts.get("request_generation_tokens")
    budget, capacity = one(cells, BUDGET), one(cells, CAPACITY)
    success = one(cells, SUCCESS)
    ended = [("success", success)] if success is not None else []
    return RankSample(
        at,
        "0",
        "",
        kv_usage_ratio=share(budget / capacity, notes) if budget is not None and capacity else None,
        kv_capacity_tokens=capacity or None,
        prompt_tokens_total=prompts.total if prompts is not None else None,
        generation_tokens_total=answers.total if answers is not None else None,
        finished_total=tuple(
            sorted([*ended, *((err, failures[err]) for err in ENDED_BADLY if err in failures)])
        ),
        told_at_end=frozenset({"generation_tokens_total", "time_to_first_token"}),
        heartbeat=total_of(one(cells, STEPS)),
        **facts,
    )
