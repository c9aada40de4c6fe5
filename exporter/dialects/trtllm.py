"""Reads TensorRT-LLM: ``trtllm-serve``, older builds of it, and its back end under Triton.

Read at NVIDIA/TensorRT-LLM 050f80d (``tensorrt_llm/metrics``), and in Triton's documents. Traps:

- ``trtllm-serve`` has its text at ``/prometheus/metrics``. ``/metrics`` is JSON, and drained by who reads it.
- Whatever is told of a request (latencies, its tokens, even the time to its first) is told when it ends, and only with
  ``return_perf_metrics``. Gauges and the KV cache need ``enable_iter_perf_stats``.
- ``trtllm-serve`` takes its gauges from the engine only after a request has ended, for as long as steps follow one
  another. Idle, it shows the last of them for good: with sequences that run, and nothing that moves.
- What it calls running are requests that the executor has taken in, as many as its batch may hold. Those for which the
  cache has no room are among them, and so are the paused.
- Triton, idle, shows what was scheduled last, and 0 active.
- Builds before the prefix came (aibrix#2004) show a handful of names without one, with labels "undefined".
- Paused sequences were put aside to make room: a gauge, there is no counter of preemptions. Their blocks are free
  again, so they are not swapped.
- Offload counts the bytes of the process that reports, which is the first of the tensor-parallel ones.
- Triton's gauges are told by a label. Numbers that contradict each other, as in its own documents, are left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import chain
from typing import NamedTuple

from exporter.dialects.cells import (
    NAMES_HALF_THERE,
    Cells,
    Facts,
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
from exporter.sample import EngineSample, RankSample

KV_BLOCKS_CONTRADICT = "kv_blocks_contradict"
UNDEFINED = "undefined"
REFUSALS = ("429", "503")

SCHEDULED = Name("scheduled", Kind.COUNT, "num_scheduled_requests")
PIPELINE = Name("pipeline", Kind.INFO, "parallel_config_info", by="pipeline_parallel_size")
USED = Name("used", Kind.COUNT, "kv_cache_used_blocks")
FREE = Name("free", Kind.COUNT, "kv_cache_free_blocks")
REUSED = Name("reused", Kind.COUNTER, "kv_cache_reused_blocks")
MISSED = Name("missed", Kind.COUNTER, "kv_cache_missed_blocks")
ERRORS = Name("errors", Kind.COUNTER, "request_error", by="http_code")
ABORTED = Name("aborted", Kind.COUNTER, "num_aborted_requests")
"""Added by Dynamo's worker."""

_REQUEST_HISTOGRAMS = {
    "end_to_end_latency": "e2e_request_latency_seconds",
    "time_to_first_token": "time_to_first_token_seconds",
    "request_time_per_output_token": "time_per_output_token_seconds",
    "queue_time": "request_queue_time_seconds",
}
_OF_REQUESTS = (
    *chain.from_iterable(histogram(field, stem) for field, stem in _REQUEST_HISTOGRAMS.items()),
    *names("finished_total", Kind.COUNTER, "request_success", by="finished_reason"),
)

SERVE = Table.of(
    r"^trtllm[_:]",
    chain(
        _OF_REQUESTS,
        histogram("prefill_time", "request_prefill_time_seconds"),
        names("prompt_tokens_total", Kind.COUNTER, "prompt_tokens"),
        names("generation_tokens_total", Kind.COUNTER, "generation_tokens"),
        names("running", Kind.COUNT, "num_requests_running"),
        names("waiting", Kind.COUNT, "num_requests_waiting"),
        names("paused", Kind.COUNT, "num_paused_requests"),
        names("kv_usage_ratio", Kind.RATIO, "kv_cache_utilization"),
        names("blocks", Kind.COUNT, "kv_cache_max_blocks"),
        names("block_tokens", Kind.COUNT, "kv_cache_tokens_per_block"),
        names("prefix_hit_ratio", Kind.RATIO, "kv_cache_hit_rate"),
        names("swap_tier_usage_ratio", Kind.RATIO, "kv_cache_host_utilization"),
        names("swap_in_bytes_total", Kind.COUNTER, "kv_cache_onboard_bytes"),
        names("swap_out_bytes_total", Kind.COUNTER, "kv_cache_offload_bytes"),
    ),
    (SCHEDULED, PIPELINE, USED, FREE, REUSED, MISSED, ERRORS, ABORTED),
)
UNPREFIXED = Table.of(r"^", _OF_REQUESTS)
_TELLING = frozenset(_REQUEST_HISTOGRAMS.values())
"""Any of these names may be anybody's; all of them together are an old ``trtllm-serve``."""

_KV, _REQUESTS, _BATCHER = "kv_cache_block_metrics", "request_metrics", "inflight_batcher_metrics"
_KV_TYPE, _REQUEST_TYPE, _BATCHER_TYPE = (
    "kv_cache_block_type",
    "request_type",
    "inflight_batcher_specific_metric",
)
TRITON_ACTIVE = Name("active", Kind.COUNT, _REQUESTS, (_REQUEST_TYPE, "active"))
TRITON_USED = Name("used", Kind.COUNT, _KV, (_KV_TYPE, "used"))
TRITON_FREE = Name("free", Kind.COUNT, _KV, (_KV_TYPE, "free"))
TRITON = Table.of(
    r"^nv_trt_llm_",
    chain(
        names("running", Kind.COUNT, _REQUESTS, only=(_REQUEST_TYPE, "scheduled")),
        names("waiting", Kind.COUNT, _REQUESTS, only=(_REQUEST_TYPE, "waiting")),
        names("paused", Kind.COUNT, _BATCHER, only=(_BATCHER_TYPE, "paused_requests")),
        names("kv_usage_ratio", Kind.RATIO, _KV, only=(_KV_TYPE, "fraction")),
        names("blocks", Kind.COUNT, _KV, only=(_KV_TYPE, "max")),
        names("block_tokens", Kind.COUNT, _KV, only=(_KV_TYPE, "tokens_per")),
        names("heartbeat", Kind.COUNT, "general_metrics", only=("general_type", "iteration_counter")),
    ),
    (TRITON_ACTIVE, TRITON_USED, TRITON_FREE),
)

_AT_END = "told when a request ends, with return_perf_metrics: true; not by Triton"
_ITERATION = "set enable_iter_perf_stats: true for trtllm-serve"
_LAST_STEP = f"{_ITERATION}; idle, it shows its last step for good, so that it stands says nothing"
_OFFLOAD = "shown once blocks were offloaded (kv_cache_config.host_cache_size); not by Triton"
ABSENCES = (
    ("running", _LAST_STEP),
    ("waiting", _ITERATION),
    ("kv_usage_ratio", _ITERATION),
    ("blocks", _ITERATION),
    ("block_tokens", _ITERATION),
    ("heartbeat", _LAST_STEP),
    ("generation_tokens_total", _AT_END),
    ("prompt_tokens_total", _AT_END),
    ("prompt_tokens_computed_total", _AT_END),
    ("time_to_first_token", _AT_END),
    ("end_to_end_latency", _AT_END),
    ("queue_time", _AT_END),
    ("finished_total", _AT_END),
    ("request_time_per_output_token", _AT_END),
    ("inter_token_latency", "TensorRT-LLM has a mean a request, not the gaps between tokens"),
    ("request_prompt_tokens", "TensorRT-LLM has no histogram of lengths"),
    ("request_generation_tokens", "TensorRT-LLM has no histogram of lengths"),
    ("preemptions_total", "TensorRT-LLM shows paused sequences and counts no preemptions"),
    ("request_preemptions", "TensorRT-LLM shows paused sequences and counts no preemptions"),
    ("swapped", "TensorRT-LLM never swaps: a paused sequence is computed again"),
    ("swap_tier_bytes", "not told; kv_cache_config.host_cache_size sets it"),
    ("swap_mode", _OFFLOAD),
    ("swap_in_bytes_total", _OFFLOAD),
    ("swap_in_blocks_total", _OFFLOAD),
    ("swap_tier_usage_ratio", _OFFLOAD),
    ("prefix_hits_total", "needs enable_iter_perf_stats, and enable_block_reuse in kv_cache_config"),
    ("waiting_by_reason", "TensorRT-LLM doesn't say what a request waits for"),
    ("aborted_total", "TensorRT-LLM counts no aborts; Dynamo's worker does"),
    ("http_ok_total", "it doesn't count HTTP answers"),
    ("admission_rejections_total", "counted from the first request answered 429 or 503; not by Triton"),
)


class Owner(NamedTuple):
    """Whose a series is, and whether Triton tells it."""

    model_name: str
    triton: bool


class TrtllmDialect:
    """``trtllm-serve`` (generation ``serve``) and Triton's back end (``triton``), one rank a model."""

    kind = "trtllm"
    title = "TensorRT-LLM"
    absences = ABSENCES

    def recognises(self, names: Collection[str]) -> bool:
        """Whether any of the names is one we read under its prefixes, or those of an old build are all there."""
        if any(SERVE.spellings(name) or TRITON.spellings(name) for name in names):
            return True
        return {name.removesuffix("_count") for name in names} >= _TELLING

    def interpret(self, series: Series) -> Slot | None:
        """What one series means; whose it is: its model, and whether Triton tells."""
        for table in (SERVE, TRITON, UNPREFIXED):
            found = read_as(table, series)
            if found is not None:
                name, detail, labels = found
                model = labels.get("model_name") or labels.get("model", "")
                owner = Owner("" if model == UNDEFINED else model, table is TRITON)
                return slot_of(owner, name, detail, labels)
        return None

    def sample(
        self, readings: Sequence[tuple[Slot, float]], *, engine: str, at: float, read_seconds: float
    ) -> EngineSample:
        """One read."""
        notes: set[str] = set()
        tables = gathered(readings, notes)
        ranks = []
        refusals: dict[str, float] = {}
        aborted = None
        for owner in sorted(tables):
            cells: Cells = tables[owner]
            facts = _triton(cells, notes) if owner.triton else _serve(cells, notes)
            ranks.append(RankSample(at, "0", owner.model_name, **facts))
            aborted = total_of(aborted, one(cells, ABORTED))
            for code, count in told_by(cells, ERRORS) or ():
                if code in REFUSALS:
                    refusals[f"http_{code}"] = refusals.get(f"http_{code}", 0.0) + count
        return EngineSample(
            at,
            engine,
            self.kind,
            tuple(ranks),
            read_seconds=read_seconds,
            generation=ranks[0].generation if ranks else "",
            aborted_total=aborted,
            admission_rejections_total=tuple(sorted(refusals.items())),
            notes=tuple(sorted(notes)),
        )


def _serve(cells: Cells, notes: set[str]) -> Facts:
    facts = facts_of(SERVE, cells, notes)
    facts |= {
        field: value for field, value in facts_of(UNPREFIXED, cells, notes).items() if field not in facts
    }
    _add_blocks(facts, one(cells, USED), one(cells, FREE), notes)
    reused, missed = one(cells, REUSED), one(cells, MISSED)
    if reused is not None or missed is not None:
        # in blocks; only the ratio of the two is used
        facts["prefix_hits_total"] = reused or 0.0
        facts["prefix_queries_total"] = total_of(reused, missed)
    if not facts.keys().isdisjoint({"swap_in_bytes_total", "swap_out_bytes_total", "swap_tier_usage_ratio"}):
        facts["swap_mode"] = "offload"
    if "running" not in facts:
        notes.add(NAMES_HALF_THERE)
    _add_scheduled(facts, cells)
    facts["gauges_hold_seconds"] = math.inf
    facts["told_at_end"] = frozenset(
        {"generation_tokens_total", "prompt_tokens_total", "time_to_first_token"}
    )
    facts["generation"] = "serve"
    return facts


def _add_scheduled(facts: Facts, cells: Cells) -> None:
    """What runs is what was scheduled; what was taken in beside that waits, or was paused.

    Of a pipeline's micro-batches only the newest is told: there all that was taken in is said to run.
    """
    scheduled, taken_in = one(cells, SCHEDULED), facts.get("running")
    if scheduled is None or taken_in is None or max(cells.get(PIPELINE) or {}, default=1.0) > 1:
        return
    facts["running"] = scheduled
    aside = taken_in - scheduled - (facts.get("paused") or 0.0)
    facts["waiting"] = total_of(facts.get("waiting"), max(0.0, aside))


def _triton(cells: Cells, notes: set[str]) -> Facts:
    facts = facts_of(TRITON, cells, notes)
    _add_blocks(facts, one(cells, TRITON_USED), one(cells, TRITON_FREE), notes)
    active = one(cells, TRITON_ACTIVE)
    if active is not None and "running" in facts:
        facts["running"] = min(facts["running"], active)
    if "running" not in facts:
        notes.add(NAMES_HALF_THERE)
    facts["told_at_end"] = frozenset(
        {"generation_tokens_total", "prompt_tokens_total", "time_to_first_token"}
    )
    facts["generation"] = "triton"
    return facts


def _add_blocks(facts: Facts, used: float | None, free: float | None, notes: set[str]) -> None:
    """The pool's geometry. Blocks that are taken and the share of them are told twice, and have to agree."""
    blocks = facts["blocks"] = facts.get("blocks") or None
    size = facts["block_tokens"] = facts.get("block_tokens") or None
    facts["pool_blocks"] = blocks
    facts["block_group_tokens"] = (size,) if size else ()
    if blocks is None or used is None:
        return
    told = facts.setdefault("kv_usage_ratio", share(used / blocks, notes))
    too_many = free is not None and used + free > blocks
    if abs(told * blocks - used) > 1.0 or too_many:
        notes.add(KV_BLOCKS_CONTRADICT)
        facts["kv_usage_ratio"] = None
