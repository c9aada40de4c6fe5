"""What vLLM calls things, from 0.2.7 to 0.33, V0 and V1: the one home of its metric names.

A stem is a name without its prefix (``vllm:``, ``vllm_`` after OpenMetrics negotiation,
``ray_vllm:`` and ``ray_vllm_`` under Ray) and, for counters, without ``_total``, which consumers
and front ends add or drop (Ray may even add a second one). First and last releases are noted where
a name came or went; the whole history is in the project's research notes.
"""

from __future__ import annotations

from itertools import chain

from exporter.dialects.names import PROCESS_START_TIME, Kind, Name, Table, histogram, names

PREFIX = r"^(?:ray_)?vllm[:_]"
HTTP_REQUESTS = "http_requests_total"
"""By handler, method and status (grouped as ``2xx``); missing in some V0 builds (#17406)."""

COMPLETION_HANDLERS = frozenset(
    {
        "/v1/completions",
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/audio/transcriptions",
        "/v1/audio/translations",
        "/cohere/v2/chat",
        "/generate",
        "/inference/v1/generate",
        "/invocations",
    }
)
"""Handlers whose POST makes one generation request. The batch handlers make many and are left out."""


# Within a field the newest spelling comes first, and wins where an engine exposes several: both
# are the same quantity, and adding them would double it.
NAMES: tuple[Name, ...] = tuple(
    chain(
        names("running", Kind.COUNT, "num_requests_running"),
        names("waiting", Kind.COUNT, "num_requests_waiting"),
        names("swapped", Kind.COUNT, "num_requests_swapped"),  # V0, gone in 0.9.1
        names("waiting_by_reason", Kind.COUNT, "num_requests_waiting_by_reason", by="reason"),  # 0.20
        # gpu_ was dropped in 0.9.2; 0.9.2 to 0.10.2 expose both
        names("kv_usage_ratio", Kind.RATIO, "kv_cache_usage_perc", "gpu_cache_usage_perc"),
        names("kv_token_usage_ratio", Kind.RATIO, "kv_cache_token_usage_perc"),  # proposed, #57336
        names("swap_tier_usage_ratio", Kind.RATIO, "cpu_cache_usage_perc"),  # V0, gone in 0.9.1
        # 0.24 split the offload counter by direction and keeps the old one beside it
        names("swap_in_bytes_total", Kind.COUNTER, "kv_offload_load_bytes"),
        names(
            "swap_in_bytes_total",
            Kind.COUNTER,
            "kv_offload_total_bytes",
            only=("transfer_type", "CPU_to_GPU"),
        ),
        names("swap_out_bytes_total", Kind.COUNTER, "kv_offload_store_bytes"),
        names(
            "swap_out_bytes_total",
            Kind.COUNTER,
            "kv_offload_total_bytes",
            only=("transfer_type", "GPU_to_CPU"),
        ),
        # The simple connector (0.31) counts blocks. Its used_blocks are those pinned by transfers, not
        # the tier's occupancy, like kv_offload_cpu_cache_usage_perc: neither is read as one.
        names("swap_in_blocks_total", Kind.COUNTER, "simple_kv_offload_load_blocks"),
        names(
            "swap_out_blocks_total",
            Kind.COUNTER,
            "simple_kv_offload_save_outcomes",
            only=("outcome", "stored"),
        ),
        names("swap_tier_bytes", Kind.INFO, "kv_offload_config_info", by="cpu_kv_cache_size_bytes"),  # 0.33
        names("swap_tier_blocks", Kind.INFO, "simple_kv_offload_info", by="capacity_blocks"),
        names("preemptions_total", Kind.COUNTER, "num_preemptions"),
        names("prompt_tokens_total", Kind.COUNTER, "prompt_tokens"),
        names(
            "prompt_tokens_computed_total",
            Kind.COUNTER,
            "prompt_tokens_by_source",  # 0.16
            only=("source", "local_compute"),
        ),
        names("generation_tokens_total", Kind.COUNTER, "generation_tokens"),
        # gpu_ was dropped in 0.9.2; up to 0.8 these count blocks, then tokens: only their ratio is one unit
        names("prefix_queries_total", Kind.COUNTER, "prefix_cache_queries", "gpu_prefix_cache_queries"),
        names("prefix_hits_total", Kind.COUNTER, "prefix_cache_hits", "gpu_prefix_cache_hits"),
        names("external_queries_total", Kind.COUNTER, "external_prefix_cache_queries"),  # 0.11.2
        names("prefix_hit_ratio", Kind.RATIO, "gpu_prefix_cache_hit_rate", off=-1.0),  # V0
        names("finished_total", Kind.COUNTER, "request_success", by="finished_reason"),
        histogram("time_to_first_token", "time_to_first_token_seconds"),
        # renamed in 0.10.2, both until 0.11.2; request_time_per_output_token is another quantity
        histogram("inter_token_latency", "inter_token_latency_seconds", "time_per_output_token_seconds"),
        histogram("request_time_per_output_token", "request_time_per_output_token_seconds"),
        histogram("end_to_end_latency", "e2e_request_latency_seconds"),
        histogram("queue_time", "request_queue_time_seconds", "time_in_queue_requests"),
        histogram("prefill_time", "request_prefill_time_seconds"),
        histogram("request_prompt_tokens", "request_prompt_tokens"),
        histogram("request_generation_tokens", "request_generation_tokens"),
        histogram("request_preemptions", "request_num_preemptions"),  # 0.30
        histogram("iteration_tokens", "iteration_tokens_total"),  # a histogram in spite of its name
    )
)

CACHE_CONFIG = Name("config", Kind.INFO, "cache_config_info")
"""Its labels are the whole configuration; it has no model_name. An Info before 0.5.5, same text."""
ADMISSION_REJECTIONS = Name("admission_rejections_total", Kind.COUNTER, "admission_rejections", by="reason")
"""0.32; of the front end, not of a rank."""
STARTED_AT = Name("started_at", Kind.COUNT, PROCESS_START_TIME)
HTTP_OK = Name("http_ok_total", Kind.COUNTER, HTTP_REQUESTS)
HTTP_OTHER = Name("http_other", Kind.COUNTER, HTTP_REQUESTS)
"""Any other answer: it tells "no completion yet" from "not counted at all"."""

V1_STEMS = frozenset(
    {
        "kv_cache_usage_perc",
        "prefix_cache_queries",
        "prefix_cache_hits",
        "gpu_prefix_cache_queries",
        "gpu_prefix_cache_hits",
    }
)
"""Names only V1 ever had: they tell it where the ``engine`` label (0.8.3) is missing."""
NULL_BLOCK_STEM = "inter_token_latency_seconds"
NULL_BLOCK_LABEL = "kv_cache_memory_bytes"
"""Both came with 0.10.2, as did usage that leaves V1's null block out of its denominator."""
OFFLOAD_FIELDS = frozenset(
    {
        "swap_in_bytes_total",
        "swap_out_bytes_total",
        "swap_in_blocks_total",
        "swap_out_blocks_total",
        "swap_tier_bytes",
        "swap_tier_blocks",
    }
)
"""Fields that only an offloading connector fills."""


ABSENCES = (
    ("swapped", "V1 never swaps; V0 tells until 0.9.0"),
    ("paused", "a preempted sequence counts as waiting"),
    ("waiting_by_reason", "told from 0.20"),
    ("kv_token_usage_ratio", "no release tells how many tokens the blocks hold"),
    ("swap_mode", "shown once an offloading connector has moved something (--kv-offloading-size)"),
    ("swap_tier_bytes", "told by the native offloading backend (--kv-offloading-size), and by V0"),
    ("swap_tier_usage_ratio", "V0 tells until 0.9.0; what V1 calls usage are blocks pinned by transfers"),
    ("swap_in_bytes_total", "counted by an offloading connector from 0.16; V0 counts no bytes"),
    ("swap_out_bytes_total", "counted by an offloading connector from 0.16; V0 counts no bytes"),
    ("swap_in_blocks_total", "counted by the simple offloading connector from 0.31"),
    ("request_preemptions", "told from 0.30"),
    ("request_time_per_output_token", "told from 0.11"),
    ("prefix_queries_total", "V0 tells a ratio over its whole life"),
    ("prefix_hits_total", "V0 tells a ratio over its whole life"),
    ("prompt_tokens_computed_total", "told from 0.16"),
    ("external_queries_total", "told from 0.11.2"),
    ("kv_pool_bytes", "told from 0.10.2"),
    ("kv_capacity_tokens", "told from 0.24"),
    ("http_ok_total", "some V0 builds count no answers"),
    ("aborted_total", "vLLM doesn't count clients that leave"),
    ("admission_rejections_total", "counted from 0.32"),
    ("started_at", "not told by several API servers"),
    ("heartbeat", "not needed: tokens are counted as they come"),
)

TABLE = Table.of(PREFIX, NAMES, (CACHE_CONFIG, ADMISSION_REJECTIONS))
