"""vLLM's metrics, from 0.2.7 to 0.33, with the releases that have them.

Read in its sources of the releases 0.2.7, 0.3.3, 0.4.0 to 0.4.3, 0.5.0 to 0.11.2, and each minor one from 0.12 to 0.33;
a bound is the first or last of those that has the name. What they mean is in ``exporter/dialects/vllm_names.py``.
"""

from __future__ import annotations

import re

from alerts.lint.facts.metric import Exporter, Kind, Metric, Release, Scale, release

OLDEST, NEWEST = "0.2.7", "0.33"
_PREFIX = re.compile(r"^(?:ray_)?vllm[:_]")

# name, kind, first release, last release where it is gone
_NAMES = """
num_requests_running gauge 0.2.7
num_requests_waiting gauge 0.2.7
num_requests_swapped gauge 0.2.7 0.9.0
num_requests_waiting_by_reason gauge 0.20
num_requests_kv_fetch_by_stage gauge 0.32
kv_cache_usage_perc ratio 0.9.2
gpu_cache_usage_perc ratio 0.2.7 0.11.2
cpu_cache_usage_perc ratio 0.2.7 0.9.0
gpu_prefix_cache_hit_rate ratio 0.5.5 0.9.0
cpu_prefix_cache_hit_rate ratio 0.5.5 0.9.0
avg_prompt_throughput_toks_per_s gauge 0.2.7 0.6.6
avg_generation_throughput_toks_per_s gauge 0.2.7 0.6.6
cache_config_info gauge 0.5.5
engine_sleep_state gauge 0.11.2
lora_requests_info gauge 0.6.4
spec_decode_draft_acceptance_rate ratio 0.5.3 0.9.2
spec_decode_efficiency ratio 0.5.3 0.9.2
kv_offload_config_info gauge 0.33
kv_offload_cpu_cache_usage_perc ratio 0.24
kv_offload_cpu_cache_read_usage_perc ratio 0.26
kv_offload_cpu_cache_write_usage_perc ratio 0.26
simple_kv_offload_info gauge 0.31
simple_kv_offload_used_blocks gauge 0.31
simple_kv_offload_pending_store_blocks gauge 0.31
websocket_connections_active gauge 0.18
rl_weight_update_operations_in_flight gauge 0.32
sleep_mode_operations_in_flight gauge 0.32
watermark_requests gauge 0.32
num_preemptions_total counter 0.4.3
prompt_tokens_total counter 0.3.3
generation_tokens_total counter 0.3.3
request_success_total counter 0.4.2
prefix_cache_queries_total counter 0.9.2
prefix_cache_hits_total counter 0.9.2
gpu_prefix_cache_queries_total counter 0.7.3 0.11.2
gpu_prefix_cache_hits_total counter 0.7.3 0.11.2
external_prefix_cache_queries_total counter 0.11.2
external_prefix_cache_hits_total counter 0.11.2
mm_cache_queries_total counter 0.11.2
mm_cache_hits_total counter 0.11.2
prompt_tokens_by_source_total counter 0.16
prompt_tokens_cached_total counter 0.16
prompt_tokens_cached_by_source_total counter 0.32
prompt_tokens_recomputed_total counter 0.16 0.19.1
tokens_total counter 0.6.4 0.7.3
admission_rejections_total counter 0.32
corrupted_requests_total counter 0.11.2
estimated_flops_per_gpu_total counter 0.17
estimated_read_bytes_per_gpu_total counter 0.17
estimated_write_bytes_per_gpu_total counter 0.17
kv_offload_total_bytes_total counter 0.16
kv_offload_total_time_total counter 0.16
kv_offload_load_bytes_total counter 0.24
kv_offload_load_time_total counter 0.24
kv_offload_store_bytes_total counter 0.24
kv_offload_store_time_total counter 0.24
kv_offload_stores_skipped_total counter 0.24
kv_offload_allocation_failure_total counter 0.26
simple_kv_offload_load_blocks_total counter 0.31
simple_kv_offload_save_outcomes_total counter 0.31
spec_decode_num_drafts_total counter 0.8.5
spec_decode_num_draft_tokens_total counter 0.5.3
spec_decode_num_accepted_tokens_total counter 0.5.3
spec_decode_num_accepted_tokens_per_pos_total counter 0.8.5
spec_decode_num_emitted_tokens_total counter 0.5.3 0.9.2
tool_call_parser_invocations_total counter 0.24
websocket_connections_total counter 0.18
nixl_num_failed_transfers_total counter 0.11.2
nixl_num_failed_notifications_total counter 0.11.2
nixl_num_kv_expired_reqs_total counter 0.16
nixl_num_notifications_after_expiry_total counter 0.32
time_to_first_token_seconds histogram 0.3.3
inter_token_latency_seconds histogram 0.10.2
time_per_output_token_seconds histogram 0.3.3 0.14.1
request_time_per_output_token_seconds histogram 0.11.0
e2e_request_latency_seconds histogram 0.3.3
request_queue_time_seconds histogram 0.6.4
request_prefill_time_seconds histogram 0.6.4
request_decode_time_seconds histogram 0.6.4
request_inference_time_seconds histogram 0.6.4
time_in_queue_requests histogram 0.6.4 0.9.0
model_forward_time_milliseconds histogram 0.6.4 0.9.0
model_execute_time_milliseconds histogram 0.6.4 0.9.0
iteration_tokens_total histogram 0.6.4
request_prompt_tokens histogram 0.4.2
request_generation_tokens histogram 0.4.2
request_max_num_generation_tokens histogram 0.6.4
request_params_n histogram 0.4.2
request_params_best_of histogram 0.4.2 0.6.2
request_params_max_tokens histogram 0.6.4
request_prefill_kv_computed_tokens histogram 0.13
request_num_preemptions histogram 0.30
kv_block_lifetime_seconds histogram 0.12
kv_block_idle_before_evict_seconds histogram 0.12
kv_block_reuse_gap_seconds histogram 0.12
kv_offload_size histogram 0.16
kv_offload_load_size histogram 0.24
kv_offload_store_size histogram 0.24
kv_offload_lookup_sync_delay_seconds histogram 0.26
kv_offload_lookup_async_delay_seconds histogram 0.26
websocket_connection_duration_seconds histogram 0.18
rl_weight_update_operation_duration_seconds histogram 0.32
sleep_mode_operation_duration_seconds histogram 0.32
nixl_xfer_time_seconds histogram 0.11.2
nixl_post_time_seconds histogram 0.11.2
nixl_bytes_transferred histogram 0.11.2
nixl_num_descriptors histogram 0.11.2
"""
_FAMILIES = (
    *("diffusion", "hf3fs_", "hisparse_", "mooncake_", "umbp_", "kv_offload_tiering_"),
    *("kv_offload_cpu_allocation_size", "kv_cache_token_usage_perc"),
)
"""Of single connectors and models, and what is proposed: not listed one by one."""
_OF_THE_ROUTER = (
    *("avg_decoding_length", "avg_itl", "avg_latency", "current_qps", "healthy_pods_total", "input_tokens"),
    *(
        "num_decoding_requests",
        "num_incoming_requests",
        "num_prefill_requests",
        "output_tokens",
        "request_errors",
    ),
    *("request_latency_seconds", "semantic_cache_"),
)
"""What production-stack's router adds under vLLM's prefix."""

_NO_SWAP = (
    "V1 never swaps. What moves between GPU and host is told by vllm:kv_offload_load_bytes_total and"
    " vllm:kv_offload_store_bytes_total (0.24), preemption by vllm:num_preemptions_total"
)
_USE = {
    "num_requests_swapped": _NO_SWAP,
    "cpu_cache_usage_perc": _NO_SWAP,
    "gpu_cache_usage_perc": "vllm:kv_cache_usage_perc (0.9.2); for both, `vllm:kv_cache_usage_perc or"
    " vllm:gpu_cache_usage_perc`",
    "gpu_prefix_cache_hit_rate": "rate(vllm:prefix_cache_hits_total[5m]) / rate(vllm:prefix_cache_queries_total[5m])",
    "cpu_prefix_cache_hit_rate": "nothing tells it any more; vllm:external_prefix_cache_hits_total tells of connectors",
    "gpu_prefix_cache_queries_total": "vllm:prefix_cache_queries_total (0.9.2)",
    "gpu_prefix_cache_hits_total": "vllm:prefix_cache_hits_total (0.9.2)",
    "avg_prompt_throughput_toks_per_s": "rate(vllm:prompt_tokens_total[5m])",
    "avg_generation_throughput_toks_per_s": "rate(vllm:generation_tokens_total[5m])",
    "spec_decode_draft_acceptance_rate": "rate(vllm:spec_decode_num_accepted_tokens_total[5m]) /"
    " rate(vllm:spec_decode_num_draft_tokens_total[5m])",
    "spec_decode_efficiency": "rate(vllm:spec_decode_num_accepted_tokens_total[5m]) /"
    " rate(vllm:spec_decode_num_drafts_total[5m])",
    "spec_decode_num_emitted_tokens_total": "vllm:spec_decode_num_accepted_tokens_total and"
    " vllm:spec_decode_num_drafts_total",
    "prompt_tokens_recomputed_total": 'vllm:prompt_tokens_by_source_total{source="local_compute"}',
    "tokens_total": "vllm:prompt_tokens_total and vllm:generation_tokens_total; it was declared and never counted",
    "time_per_output_token_seconds": "vllm:inter_token_latency_seconds (0.10.2), the same observations;"
    " vllm:request_time_per_output_token_seconds is a mean a request, another quantity",
    "time_in_queue_requests": "vllm:request_queue_time_seconds",
    "model_forward_time_milliseconds": "vllm:request_inference_time_seconds",
    "model_execute_time_milliseconds": "vllm:request_inference_time_seconds",
    "request_params_best_of": "vllm:request_params_n",
}
_WRONG = {
    "gpu_memory_usage_bytes": "vLLM tells no memory in bytes: vllm:kv_cache_usage_perc, or the GPU's own exporter",
    "request_failure_counter": "failures are not counted apart: http_requests_total by status",
    "http_requests_total": "it has no prefix: http_requests_total",
    "num_requests_success_total": "vllm:request_success_total",
    "avg_prompt_throughput_tok_per_s": "rate(vllm:prompt_tokens_total[5m])",
    "avg_generation_throughput_tok_per_s": "rate(vllm:generation_tokens_total[5m])",
}
_MORE_BUCKETS: Release = (0, 8, 4)
_ALWAYS: Release = ()
_PACE = ((_ALWAYS, 2.5), (_MORE_BUCKETS, 80.0))
_FIRST_TOKEN = ((_ALWAYS, 10.0), (_MORE_BUCKETS, 2560.0))
_REQUEST = ((_ALWAYS, 60.0), (_MORE_BUCKETS, 7680.0))
_TOPS = {
    "time_per_output_token_seconds": _PACE,
    "inter_token_latency_seconds": _PACE,
    "time_to_first_token_seconds": _FIRST_TOKEN,
    "e2e_request_latency_seconds": _REQUEST,
    "request_queue_time_seconds": _REQUEST,
    "request_prefill_time_seconds": _REQUEST,
    "request_decode_time_seconds": _REQUEST,
    "request_inference_time_seconds": _REQUEST,
    "request_num_preemptions": ((_ALWAYS, 20.0),),
    "iteration_tokens_total": ((_ALWAYS, 16_384.0),),
}
"""As they are unless ``--custom-histogram-buckets`` (0.32) changes them."""
_OFF = {"gpu_prefix_cache_hit_rate": -1.0, "cpu_prefix_cache_hit_rate": -1.0}


def _metric(name: str, kind: str, first: str, last: str = "") -> Metric:
    return Metric(
        name,
        Kind.GAUGE if kind == "ratio" else Kind(kind),
        Scale.RATIO if kind == "ratio" else Scale.OPEN,
        release(first),
        release(last) if last else (),
        use=_USE.get(name, ""),
        tops=_TOPS.get(name, ()),
        off=_OFF.get(name),
    )


VLLM = Exporter(
    "vllm",
    "vLLM",
    _PREFIX,
    "vllm:",
    {metric.name: metric for metric in (_metric(*line.split()) for line in _NAMES.split("\n") if line)},
    _WRONG,
    complete=True,
    families=(*_FAMILIES, *_OF_THE_ROUTER),
    oldest=OLDEST,
    newest=NEWEST,
)
