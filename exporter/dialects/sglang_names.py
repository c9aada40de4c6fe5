"""What SGLang calls things, 0.4.9 to the main branch of autumn 2026: the one home of its metric names."""

from __future__ import annotations

from itertools import chain

from exporter.dialects.names import Kind, Name, Table, histogram, names

QUEUED = Name("queued", Kind.COUNT, "num_queue_reqs")
DEFERRED = tuple(
    Name("deferred", Kind.COUNT, stem)
    for stem in (
        "num_grammar_queue_reqs",
        "num_prefill_bootstrap_queue_reqs",  # until 0.5.10 ..._prealloc_...
        "num_prefill_prealloc_queue_reqs",
        "num_decode_prealloc_queue_reqs",
        "num_decode_transfer_queue_reqs",
    )
)
"""Queues before the one that waits for KV: of grammars to be compiled, of the other half of a split engine."""
FULL_USAGE = Name("full_usage", Kind.RATIO, "full_token_usage")
OTHER_POOLS = tuple(
    Name("other_pool", Kind.COUNT, stem)
    for stem in (
        "swa_token_usage",
        "swa_available_tokens",
        "mamba_usage",
        "mamba_available_tokens",
        "max_total_num_tokens_swa",
    )
)
"""Above 0 where a hybrid model has pools beside that of full attention."""
CAPACITY = Name("capacity", Kind.COUNT, "max_total_num_tokens")
USED_TOKENS = Name("used_tokens", Kind.COUNT, "num_used_tokens")
HELD_TOKENS = Name("held_tokens", Kind.COUNT, "decode_sum_seq_lens")
PAGE_SIZE = Name("page_size", Kind.COUNT, "page_size")  # gauges from 0.5.11, labels of an info before
PAGES = Name("pages", Kind.COUNT, "num_pages")
PAGE_SIZE_INFO = Name("page_size", Kind.INFO, "cache_config_info", by="page_size")
REALTIME = Name("realtime", Kind.COUNTER, "realtime_tokens", by="mode")
PREFILL = Name("prefill", Kind.COUNTER, "prefill_effective_tokens", by="mode")
CACHED = Name("cached", Kind.COUNTER, "cached_tokens", by="cache_source")
HOST_USED = Name("host_used", Kind.COUNT, "hicache_host_used_tokens")
HOST_TOTAL = Name("host_total", Kind.COUNT, "hicache_host_total_tokens")

OF_A_RANK = Table.of(
    r"^(?:ray_)?sglang[:_]",
    chain(
        names("running", Kind.COUNT, "num_running_reqs"),
        names("kv_usage_ratio", Kind.RATIO, "token_usage"),
        # the gauge num_retracted_reqs begins anew at each log line
        names("preemptions_total", Kind.COUNTER, "num_retracted_requests"),
        histogram("queue_time", "queue_time_seconds"),
    ),
    (
        QUEUED,
        *DEFERRED,
        FULL_USAGE,
        *OTHER_POOLS,
        CAPACITY,
        USED_TOKENS,
        HELD_TOKENS,
        PAGE_SIZE,
        PAGES,
        PAGE_SIZE_INFO,
        REALTIME,
        PREFILL,
        HOST_USED,
        HOST_TOTAL,
    ),
)
"""Told by schedulers: each tensor- and pipeline-parallel one repeats the same."""

FINISHED = Name("finished", Kind.COUNTER, "num_requests")
ABORTED = Name("aborted", Kind.COUNTER, "num_aborted_requests")

OF_THE_FRONT = Table.of(
    r"^(?:ray_)?sglang[:_]",
    chain(
        names("prompt_tokens_total", Kind.COUNTER, "prompt_tokens"),
        names("generation_tokens_total", Kind.COUNTER, "generation_tokens"),
        names("swap_in_bytes_total", Kind.COUNTER, "load_back_bytes"),
        names("swap_out_bytes_total", Kind.COUNTER, "hicache_backup_bytes"),
        histogram("time_to_first_token", "time_to_first_token_seconds"),
        histogram("inter_token_latency", "inter_token_latency_seconds"),
        histogram("end_to_end_latency", "e2e_request_latency_seconds"),
        histogram("request_prompt_tokens", "prompt_tokens_histogram"),
        histogram("request_generation_tokens", "generation_tokens_histogram"),
        histogram("request_preemptions", "num_retractions"),
    ),
    (CACHED, FINISHED, ABORTED),
)
"""Told without a rank: by the front end, and by caches whose processes are added up."""

_HICACHE = "kept on the host with --enable-hierarchical-cache only; the newest releases count the bytes"
ABSENCES = (
    ("swapped", "SGLang never swaps: a retracted request is computed again"),
    ("paused", "SGLang's paused requests wait for new weights, not for room"),
    ("preemptions_total", "retractions are counted in newer releases only (0.5.10 does)"),
    ("request_preemptions", "told by 0.5.10, and no more in autumn 2026"),
    (
        "generation_tokens_total",
        "counted when a request ends; newer releases (0.5.10) count tokens as they come too",
    ),
    (
        "prompt_tokens_total",
        "counted when a request ends; newer releases (0.5.10) count prompts as they are taken in too",
    ),
    ("prompt_tokens_computed_total", "counted in newer releases only (0.5.10 does)"),
    ("waiting_by_reason", "its other queues are not told"),
    ("queue_time", "told in newer releases only (0.5.10 does)"),
    ("aborted_total", "counted in newer releases only (0.5.10 does)"),
    ("request_prompt_tokens", "shown with --collect-tokens-histogram"),
    ("request_generation_tokens", "shown with --collect-tokens-histogram"),
    ("running", "its gauge is refreshed every 40 decode steps, and up to 30 s after work has ended"),
    ("kv_token_usage_ratio", "what it tells of tokens counts a shared prefix once for each sequence"),
    (
        "block_tokens",
        "the page size is told in newer releases only (0.5.10 does); a hybrid model's pools are of several sizes",
    ),
    (
        "blocks",
        "the page size is told in newer releases only (0.5.10 does); a hybrid model's pools are of several sizes",
    ),
    ("kv_pool_bytes", "SGLang tells it in rounded GB, for all pools together"),
    ("kv_capacity_tokens", "told in newer releases only (0.5.10 does)"),
    ("swap_mode", _HICACHE),
    ("swap_tier_bytes", _HICACHE),
    ("swap_tier_usage_ratio", _HICACHE),
    ("swap_in_bytes_total", _HICACHE),
    ("swap_in_blocks_total", _HICACHE),
    ("swap_out_bytes_total", _HICACHE),
    ("request_time_per_output_token", "SGLang has gaps between tokens, not a mean a request"),
    ("prefill_time", "SGLang tells the time of stages, not of a prefill"),
    ("http_ok_total", "not needed: SGLang counts aborts itself"),
    ("admission_rejections_total", "SGLang doesn't count what it refuses"),
    ("started_at", "its processes don't say when they began"),
)
