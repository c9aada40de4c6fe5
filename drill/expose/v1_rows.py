"""Rows of vLLM V1 that every engine has: the scheduler's, and the counters of tokens and requests.

Names and help texts are those of 0.32; when a name came or went is from the packages of the releases.
"""

from __future__ import annotations

from drill.expose.observed_v1 import ObservedV1
from drill.expose.rows import Row
from drill.expose.text import Told

_V1 = Row[ObservedV1]
_NULL_BLOCK_LEFT_OUT = (0, 10, 2)
"""Since then the block that V1 keeps is in neither part of the usage."""

_REASONS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("stop", ()),
    ("length", ()),
    ("abort", ()),
    ("error", (0, 13)),
    ("repetition", (0, 17)),
)


def usage_ratio(seen: ObservedV1) -> float:
    """Up to 0.10.1 the block that V1 keeps counts as used, and an idle engine's usage is not 0."""
    gauges = seen.gauges
    if seen.served.release.in_range(_NULL_BLOCK_LEFT_OUT, None):
        return gauges.usage_ratio
    return (gauges.used_blocks + 1) / (gauges.usable_blocks + 1)


def in_lookup_units(seen: ObservedV1, tokens: int) -> int:
    """Up to 0.8 the prefix cache counted blocks."""
    return tokens if seen.served.release.in_range((0, 9), None) else tokens // seen.config.block_tokens


ESTIMATE_ROWS = (
    _V1(
        "estimated_flops_per_gpu_total",
        "counter",
        "Estimated number of floating point operations per GPU (for Model Flops Utilization calculations).",
        lambda seen: seen.matrix_flops,
        (0, 32),
    ),
    _V1(
        "estimated_read_bytes_per_gpu_total",
        "counter",
        "Estimated number of bytes read from memory per GPU (for Model Flops Utilization calculations).",
        lambda seen: seen.read_bytes,
        (0, 32),
    ),
    _V1(
        "estimated_write_bytes_per_gpu_total",
        "counter",
        "Estimated number of bytes written to memory per GPU (for Model Flops Utilization calculations).",
        lambda seen: seen.computed_tokens * seen.config.block_bytes_gpu / seen.config.block_tokens,
        (0, 32),
    ),
)
QUEUE_ROWS = (
    _V1(
        "num_requests_running",
        "gauge",
        "Number of requests in model execution batches.",
        lambda seen: seen.gauges.running,
    ),
    _V1(
        "num_requests_waiting",
        "gauge",
        "Number of requests waiting to be processed.",
        lambda seen: seen.gauges.waiting,
    ),
    _V1(
        "num_requests_waiting_by_reason",
        "gauge",
        "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; "
        "'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all "
        "reasons equals vllm:num_requests_waiting.",
        lambda seen: (
            Told(seen.gauges.waiting - seen.gauges.deferred, (("reason", "capacity"),)),
            Told(seen.gauges.deferred, (("reason", "deferred"),)),
        ),
        (0, 20),
    ),
)
STATE_ROWS = (
    _V1(
        "engine_sleep_state",
        "gauge",
        "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; "
        "weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.",
        lambda _: tuple(
            Told(value, (("sleep_state", state),))
            for state, value in (("awake", 1.0), ("weights_offloaded", 0.0), ("discard_all", 0.0))
        ),
        (0, 11, 2),
    ),
    _V1(
        "gpu_cache_usage_perc",
        "gauge",
        "GPU KV-cache usage. 1 means 100 percent usage.",
        usage_ratio,
        (),
        (0, 11),
    ),
    _V1(
        "kv_cache_usage_perc",
        "gauge",
        "KV-cache usage. 1 means 100 percent usage.",
        usage_ratio,
        (0, 9, 2),
    ),
    _V1(
        "gpu_prefix_cache_queries_total",
        "counter",
        "GPU prefix cache queries, in terms of number of queried tokens.",
        lambda seen: in_lookup_units(seen, seen.prefix_queries),
        (),
        (0, 11),
    ),
    _V1(
        "gpu_prefix_cache_hits_total",
        "counter",
        "GPU prefix cache hits, in terms of number of cached tokens.",
        lambda seen: in_lookup_units(seen, seen.prefix_hits),
        (),
        (0, 11),
    ),
    _V1(
        "prefix_cache_queries_total",
        "counter",
        "Prefix cache queries, in terms of number of queried tokens.",
        lambda seen: seen.prefix_queries,
        (0, 9, 2),
    ),
    _V1(
        "prefix_cache_hits_total",
        "counter",
        "Prefix cache hits, in terms of number of cached tokens.",
        lambda seen: seen.prefix_hits,
        (0, 9, 2),
    ),
    _V1(
        "external_prefix_cache_queries_total",
        "counter",
        "External prefix cache queries from KV connector cross-instance cache sharing, in terms of number of queried "
        "tokens.",
        lambda seen: seen.external_queries,
        (0, 11, 2),
    ),
    _V1(
        "external_prefix_cache_hits_total",
        "counter",
        "External prefix cache hits from KV connector cross-instance cache sharing, in terms of number of cached "
        "tokens.",
        lambda seen: seen.external_hits,
        (0, 11, 2),
    ),
    _V1(
        "mm_cache_queries_total",
        "counter",
        "Multi-modal cache queries, in terms of number of queried items.",
        lambda _: 0.0,
        (0, 11, 2),
    ),
    _V1(
        "mm_cache_hits_total",
        "counter",
        "Multi-modal cache hits, in terms of number of cached items.",
        lambda _: 0.0,
        (0, 11, 2),
    ),
    _V1(
        "num_preemptions_total",
        "counter",
        "Cumulative number of preemption from the engine.",
        lambda seen: seen.preemptions,
    ),
    _V1(
        "prompt_tokens_total",
        "counter",
        "Number of prefill tokens processed.",
        lambda seen: seen.prompt_tokens,
    ),
    _V1(
        "prompt_tokens_by_source_total",
        "counter",
        "Number of prompt tokens by source.",
        lambda seen: (
            Told(
                seen.prompt_tokens - seen.prompt_local_tokens - seen.prompt_external_tokens,
                (("source", "local_compute"),),
            ),
            Told(seen.prompt_local_tokens, (("source", "local_cache_hit"),)),
            Told(seen.prompt_external_tokens, (("source", "external_kv_transfer"),)),
        ),
        (0, 16),
    ),
    _V1(
        "prompt_tokens_cached_total",
        "counter",
        "Number of cached prompt tokens (local + external).",
        lambda seen: seen.prompt_local_tokens + seen.prompt_external_tokens,
        (0, 16),
    ),
    _V1(
        "prompt_tokens_cached_by_source_total",
        "counter",
        "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to DRAM), "
        "disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; sums to "
        "vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.",
        lambda seen: tuple(
            Told(tokens, (("source", source),))
            for source, tokens in (
                ("device", seen.prefix_hits),
                ("host", seen.external_hits),
                ("p2p", 0),
                ("disk", 0),
                ("external_unspecified", 0),
            )
        ),
        (0, 32),
    ),
    _V1(
        "generation_tokens_total",
        "counter",
        "Number of generation tokens processed.",
        lambda seen: seen.generation_tokens,
    ),
    _V1(
        "request_success_total",
        "counter",
        "Count of successfully processed requests.",
        lambda seen: tuple(
            Told(seen.finished if reason == "length" else 0, (("finished_reason", reason),))
            for reason, since in _REASONS
            if seen.served.release.in_range(since, None)
        ),
    ),
)
