"""``/metrics`` of vLLM V0, as 0.8.5 writes it: several processes' form, no ``engine`` label, nothing of HTTP."""

from __future__ import annotations

from drill.expose.cache_config import cache_config
from drill.expose.observed_v0 import ObservedV0
from drill.expose.rows import Row, told, write
from drill.expose.text import Family, Labels, Page, Told

_V0 = Row[ObservedV0]
_HISTOGRAM = "histogram"

_LORA = Family("vllm:lora_requests_info", "gauge", "Running stats on lora requests.")
_CONFIG = Family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
_GAUGES = (
    _V0(
        "num_requests_running",
        "gauge",
        "Number of requests currently running on GPU.",
        lambda seen: seen.gauges.running,
    ),
    _V0(
        "num_requests_swapped",
        "gauge",
        "Number of requests swapped to CPU. DEPRECATED: KV cache offloading is not used in V1",
        lambda seen: seen.gauges.swapped,
    ),
    _V0(
        "num_requests_waiting",
        "gauge",
        "Number of requests waiting to be processed.",
        lambda seen: seen.gauges.waiting,
    ),
    _V0(
        "gpu_cache_usage_perc",
        "gauge",
        "GPU KV-cache usage. 1 means 100 percent usage.",
        lambda seen: usage_ratio(seen.gauges.used_blocks, seen.gauges.usable_blocks),
    ),
    _V0(
        "cpu_cache_usage_perc",
        "gauge",
        "CPU KV-cache usage. 1 means 100 percent usage. DEPRECATED: KV cache offloading is not used in V1",
        lambda seen: usage_ratio(seen.gauges.host_used_blocks, seen.gauges.host_blocks),
    ),
    _V0(
        "cpu_prefix_cache_hit_rate",
        "gauge",
        "CPU prefix cache block hit rate. DEPRECATED: KV cache offloading is not used in V1",
        lambda seen: 0.0 if seen.config.prefix_caching else -1.0,
    ),
    _V0(
        "gpu_prefix_cache_hit_rate",
        "gauge",
        "GPU prefix cache block hit rate. DEPRECATED: use vllm:gpu_prefix_cache_queries and "
        "vllm:gpu_prefix_cache_queries in V1",
        lambda seen: seen.prefix_hit_ratio,
    ),
    _V0(
        "num_preemptions_total",
        "counter",
        "Cumulative number of preemption from the engine.",
        lambda seen: seen.preemptions,
    ),
    _V0(
        "prompt_tokens_total",
        "counter",
        "Number of prefill tokens processed.",
        lambda seen: seen.prompt_tokens,
    ),
    _V0(
        "generation_tokens_total",
        "counter",
        "Number of generation tokens processed.",
        lambda seen: seen.generation_tokens,
    ),
    _V0(
        "request_success_total",
        "counter",
        "Count of successfully processed requests.",
        lambda seen: (Told(seen.finished, (("finished_reason", "length"),)),) if seen.finished else (),
    ),
)
_HISTOGRAMS = (
    _V0(
        "iteration_tokens_total",
        _HISTOGRAM,
        "Histogram of number of tokens per engine_step.",
        lambda seen: seen.iteration_tokens,
    ),
    _V0(
        "time_to_first_token_seconds",
        _HISTOGRAM,
        "Histogram of time to first token in seconds.",
        lambda seen: seen.time_to_first_token,
    ),
    _V0(
        "time_per_output_token_seconds",
        _HISTOGRAM,
        "Histogram of time per output token in seconds.",
        lambda seen: seen.inter_token_latency,
    ),
    _V0(
        "e2e_request_latency_seconds",
        _HISTOGRAM,
        "Histogram of end to end request latency in seconds.",
        lambda seen: seen.end_to_end_latency,
    ),
    _V0(
        "request_queue_time_seconds",
        _HISTOGRAM,
        "Histogram of time spent in WAITING phase for request.",
        lambda seen: seen.queue_time,
    ),
    _V0(
        "request_inference_time_seconds",
        _HISTOGRAM,
        "Histogram of time spent in RUNNING phase for request.",
        lambda seen: seen.inference_time,
    ),
    _V0(
        "request_prefill_time_seconds",
        _HISTOGRAM,
        "Histogram of time spent in PREFILL phase for request.",
        lambda seen: seen.prefill_time,
    ),
    _V0(
        "request_decode_time_seconds",
        _HISTOGRAM,
        "Histogram of time spent in DECODE phase for request.",
        lambda seen: seen.decode_time,
    ),
    _V0(
        "time_in_queue_requests",
        _HISTOGRAM,
        "Histogram of time the request spent in the queue in seconds. DEPRECATED: use "
        "vllm:request_queue_time_seconds instead.",
        lambda seen: seen.queue_time,
    ),
    _V0(
        "request_prompt_tokens",
        _HISTOGRAM,
        "Number of prefill tokens processed.",
        lambda seen: seen.request_prompt_tokens,
    ),
    _V0(
        "request_generation_tokens",
        _HISTOGRAM,
        "Number of generation tokens processed.",
        lambda seen: seen.request_generation_tokens,
    ),
    _V0("request_params_n", _HISTOGRAM, "Histogram of the n request parameter.", lambda seen: seen.request_n),
    _V0(
        "request_max_num_generation_tokens",
        _HISTOGRAM,
        "Histogram of maximum number of requested generation tokens.",
        lambda seen: seen.request_longest_tokens,
    ),
    _V0(
        "request_params_max_tokens",
        _HISTOGRAM,
        "Histogram of the max_tokens request parameter.",
        lambda seen: seen.request_max_tokens,
    ),
)
_NO_LORA: Labels = (("max_lora", "0"), ("running_lora_adapters", ""), ("waiting_lora_adapters", ""))


def usage_ratio(used: int, blocks: int) -> float:
    """As V0 reckons it: 1 less the share that is free; 0 of no blocks."""
    return 1.0 - (blocks - used) / blocks if blocks else 0.0


def page(seen: ObservedV0) -> str:
    """The answer of one engine."""
    served = seen.served
    ranks = (((("model_name", served.model_name),), seen),)
    config = tuple(cache_config(served.config, served.release).items())
    return write(
        Page(several_processes=True),
        (
            (_LORA, (Told(served.epoch + seen.updated, _NO_LORA),)),
            *((row.family, told(row, ranks)) for row in _GAUGES),
            (_CONFIG, (Told(1.0, config),)),
            *((row.family, told(row, ranks)) for row in _HISTOGRAMS),
        ),
    )
