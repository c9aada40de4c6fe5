"""Reads NVIDIA Dynamo: its front end, and a worker whose engine's own series are not passed on.

Read at ai-dynamo/dynamo (``lib/runtime/src/metrics``, ``lib/llm/src/http/service/metrics.rs``, its documents). Traps:

- A worker passes its engine's series on (``vllm:``, ``sglang:``, ``trtllm_``): the engine's own dialect reads such a
  page. Reading the engine's own port as well shows the same engine twice.
- ``queued`` counts a request from its arrival to its first token, prefill included, and lies within ``inflight``.
- ``gpu_cache_usage_percent`` goes from 0 to 1; a worker that doesn't publish shows 0 blocks.
- A worker names its model on the series of its endpoints alone, not on those of its KV cache.
- A worker serves maintenance endpoints beside ``generate``; only that one counts.
- The front end writes model names in lower case, but not in the gauges of their configuration.
- ``disconnected_clients`` is a gauge that only rises with streams; cancellations are a counter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import NamedTuple

from exporter.dialects.cells import (
    Cells,
    Facts,
    Slot,
    facts_of,
    gathered,
    one,
    read_as,
    slot_of,
    told_by,
    total_of,
)
from exporter.dialects.names import Kind, Name, Table, histogram, names
from exporter.exposition import Series
from exporter.sample import ALL_RANKS, EngineSample, Histogram, RankSample

FRONT_END, WORKER = "frontend", "worker"
GENERATE = "generate"

INFLIGHT = tuple(Name("inflight", Kind.COUNT, stem) for stem in ("active_requests", "inflight_requests"))
QUEUED = Name("queued", Kind.COUNT, "queued_requests")
STAGES = Name("stages", Kind.COUNT, "stage_requests", by="stage")
BEFORE_FIRST_TOKEN = ("preprocess", "route", "dispatch")
REQUESTS = Name("requests", Kind.COUNTER, "requests")
CANCELLED = Name("cancelled", Kind.COUNTER, "model_cancellation")
REJECTED = Name("rejected", Kind.COUNTER, "model_rejection")

FRONT = Table.of(
    r"^dynamo_frontend_",
    chain(
        names("generation_tokens_total", Kind.COUNTER, "output_tokens"),
        histogram("time_to_first_token", "time_to_first_token_seconds"),
        histogram("inter_token_latency", "inter_token_latency_seconds"),
        histogram("end_to_end_latency", "request_duration_seconds"),
        histogram("request_prompt_tokens", "input_sequence_tokens"),
        histogram("request_generation_tokens", "output_sequence_tokens"),
        histogram("cached", "cached_tokens"),
    ),
    (*INFLIGHT, QUEUED, STAGES, REQUESTS, CANCELLED, REJECTED),
)

WORKER_CANCELLED = Name("cancelled", Kind.COUNTER, "cancellation")
COMPONENT = Table.of(
    r"^dynamo_component_(?:kvstats_)?",
    chain(
        names("running", Kind.COUNT, "inflight_requests"),
        names("kv_usage_ratio", Kind.RATIO, "gpu_cache_usage_percent"),
        names("blocks", Kind.COUNT, "total_blocks"),
        histogram("end_to_end_latency", "request_duration_seconds"),
    ),
    (REQUESTS, WORKER_CANCELLED),
)
_OF_ENDPOINTS = frozenset({"running", "end_to_end_latency", "requests", "cancelled"})
BLOCK_MANAGER = Table.of(
    r"^kvbm_",
    chain(
        names("swap_out_blocks_total", Kind.COUNTER, "offload_blocks_d2h"),
        names("swap_in_blocks_total", Kind.COUNTER, "onboard_blocks_h2d"),
    ),
)

_OF_THE_WORKER = "told by the engines: read them, or workers that pass their engine's series on"
_OF_THE_ENGINE = "a worker alone doesn't tell: let it pass its engine's series on, or read the engine"
ABSENCES = (
    ("swapped", _OF_THE_WORKER),
    ("paused", _OF_THE_WORKER),
    ("waiting_by_reason", _OF_THE_WORKER),
    ("kv_usage_ratio", _OF_THE_WORKER),
    ("blocks", _OF_THE_WORKER),
    ("block_tokens", _OF_THE_WORKER),
    ("kv_token_usage_ratio", _OF_THE_WORKER),
    ("preemptions_total", _OF_THE_WORKER),
    ("request_preemptions", _OF_THE_WORKER),
    ("queue_time", _OF_THE_WORKER),
    ("prefill_time", _OF_THE_WORKER),
    ("kv_pool_bytes", _OF_THE_WORKER),
    ("kv_capacity_tokens", _OF_THE_WORKER),
    ("swap_mode", _OF_THE_WORKER),
    ("swap_tier_bytes", _OF_THE_WORKER),
    ("swap_in_bytes_total", _OF_THE_WORKER),
    ("swap_in_blocks_total", _OF_THE_WORKER),
    ("swap_tier_usage_ratio", _OF_THE_WORKER),
    ("heartbeat", "a front end has no steps"),
    (
        "running",
        "a front end tells prompts that are being taken in from those that wait by their first token only",
    ),
    ("waiting", _OF_THE_ENGINE),
    ("generation_tokens_total", _OF_THE_ENGINE),
    ("prompt_tokens_total", _OF_THE_ENGINE),
    ("prompt_tokens_computed_total", _OF_THE_ENGINE),
    ("time_to_first_token", _OF_THE_ENGINE),
    ("inter_token_latency", _OF_THE_ENGINE),
    ("request_prompt_tokens", _OF_THE_ENGINE),
    ("request_generation_tokens", _OF_THE_ENGINE),
    ("request_time_per_output_token", "Dynamo has gaps between tokens, not a mean a request"),
    ("prefix_hits_total", "counted by the front end of newer releases"),
    ("aborted_total", "counted from the first cancellation"),
    ("http_ok_total", "not needed: Dynamo counts cancellations itself"),
    ("admission_rejections_total", "counted from the first request that is refused"),
)


class Owner(NamedTuple):
    """Whose a series is: a model at the front end, or on a data-parallel rank of a worker."""

    place: str
    model: str
    rank: str


class DynamoDialect:
    """The front end (generation ``frontend``: a rank ``all`` a model) or a worker (``worker``)."""

    kind = "dynamo"
    title = "Dynamo"
    absences = ABSENCES

    def recognises(self, names: Collection[str]) -> bool:
        """Whether any of the names is one we read of its front end or a worker's."""
        return any(FRONT.spellings(name) or COMPONENT.spellings(name) for name in names)

    def interpret(self, series: Series) -> Slot | None:
        """What one series means; None for the many we have no use for."""
        found = read_as(FRONT, series)
        if found is not None:
            name, detail, labels = found
            if name is REQUESTS:
                detail = labels.get("error_type") or labels.get("status", "")
            owner = Owner(FRONT_END, labels.get("model", "").lower(), ALL_RANKS)
            return slot_of(owner, name, detail, labels)
        for table in (COMPONENT, BLOCK_MANAGER):
            found = read_as(table, series)
            if found is not None:
                name, detail, labels = found
                if name.field in _OF_ENDPOINTS and labels.get("dynamo_endpoint", GENERATE) != GENERATE:
                    return None
                owner = Owner(WORKER, labels.get("model", ""), labels.get("dp_rank") or "0")
                return slot_of(owner, name, detail, labels)
        return None

    def sample(
        self, readings: Sequence[tuple[Slot, float]], *, engine: str, at: float, read_seconds: float
    ) -> EngineSample:
        """One read. A front end's page speaks of workers too (its router watches them): those aren't its own."""
        notes: set[str] = set()
        tables = gathered(_of_one_model(readings), notes)
        fronts = sorted(owner for owner in tables if owner.place == FRONT_END)
        owners = fronts or sorted(tables, key=lambda owner: (len(owner.rank), owner.rank))
        ranks = []
        aborted, rejected = None, None
        for owner in owners:
            cells = tables[owner]
            facts = _front(cells, notes) if fronts else _worker(cells, notes)
            ranks.append(
                RankSample(at, owner.rank, owner.model, generation=FRONT_END if fronts else WORKER, **facts)
            )
            by_outcome = dict(told_by(cells, REQUESTS) or ())
            cancelled = one(cells, CANCELLED if fronts else WORKER_CANCELLED)
            aborted = total_of(aborted, by_outcome.get("cancelled") if cancelled is None else cancelled)
            told = one(cells, REJECTED)
            rejected = total_of(rejected, by_outcome.get("overload") if told is None else told)
        return EngineSample(
            at,
            engine,
            self.kind,
            tuple(ranks),
            read_seconds=read_seconds,
            generation=ranks[0].generation if ranks else "",
            aborted_total=aborted,
            admission_rejections_total=() if rejected is None else (("overload", rejected),),
            notes=tuple(sorted(notes)),
        )


def _of_one_model(readings: Sequence[tuple[Slot, float]]) -> list[tuple[Slot, float]]:
    """A worker's series under the model that some of them name; under none where they name several, or none does."""
    workers = {slot.owner for slot, _ in readings if slot.owner.place == WORKER}
    models = {owner.model for owner in workers if owner.model}
    model = models.pop() if len(models) == 1 else ""
    named = {owner: owner._replace(model=model) for owner in workers}
    return [(slot._replace(owner=named.get(slot.owner, slot.owner)), value) for slot, value in readings]


def _front(cells: Cells, notes: set[str]) -> Facts:
    facts = facts_of(FRONT, cells, notes)
    cached: Histogram | None = facts.pop("cached", None)
    prompts: Histogram | None = facts.get("request_prompt_tokens")
    facts["prompt_tokens_total"] = prompts.total if prompts is not None else None
    if cached is not None and prompts is not None:
        facts["prefix_hits_total"], facts["prefix_queries_total"] = cached.total, prompts.total
    inflight = next((count for name in INFLIGHT if (count := one(cells, name)) is not None), None)
    waiting = one(cells, QUEUED)
    if waiting is None:
        stages = dict(told_by(cells, STAGES) or ())
        waiting = total_of(*(stages.get(stage) for stage in BEFORE_FIRST_TOKEN))
    facts["waiting"] = waiting
    if inflight is not None and waiting is not None:
        facts["running"] = max(0.0, inflight - waiting)
        facts["told_at_end"] = frozenset({"running"})  # from its first token on
    facts["finished_total"] = told_by(cells, REQUESTS) or ()
    return facts


def _worker(cells: Cells, notes: set[str]) -> Facts:
    facts = facts_of(COMPONENT, cells, notes) | facts_of(BLOCK_MANAGER, cells, notes)
    if not facts.get("blocks"):
        facts["blocks"] = facts["kv_usage_ratio"] = None  # a worker that doesn't publish shows 0 for both
    facts["pool_blocks"] = facts["blocks"]
    finished = one(cells, REQUESTS)
    if finished is not None:
        facts["finished_total"] = (("finished", finished),)
    if "swap_in_blocks_total" in facts or "swap_out_blocks_total" in facts:
        facts["swap_mode"] = "offload"
    return facts
