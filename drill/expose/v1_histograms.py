"""Rows of vLLM V1's histograms: names and help texts of 0.32."""

from __future__ import annotations

from collections.abc import Callable

from drill.expose.buckets import Buckets
from drill.expose.observed_v1 import ObservedV1
from drill.expose.rows import Row


def _row(
    name: str,
    text: str,
    read: Callable[[ObservedV1], Buckets],
    since: tuple[int, ...] = (),
    until: tuple[int, ...] | None = None,
) -> Row[ObservedV1]:
    return Row(name, "histogram", text, read, since, until)


HISTOGRAM_ROWS = (
    _row(
        "request_prompt_tokens",
        "Number of prefill tokens processed.",
        lambda seen: seen.request_prompt_tokens,
    ),
    _row(
        "request_generation_tokens",
        "Number of generation tokens processed.",
        lambda seen: seen.request_generation_tokens,
    ),
    _row(
        "iteration_tokens_total",
        "Histogram of number of tokens per engine_step.",
        lambda seen: seen.iteration_tokens,
    ),
    _row(
        "request_max_num_generation_tokens",
        "Histogram of maximum number of requested generation tokens.",
        lambda seen: seen.request_longest_tokens,
    ),
    _row("request_params_n", "Histogram of the n request parameter.", lambda seen: seen.request_n),
    _row(
        "request_params_max_tokens",
        "Histogram of the max_tokens request parameter.",
        lambda seen: seen.request_max_tokens,
    ),
    _row(
        "time_to_first_token_seconds",
        "Histogram of time to first token in seconds.",
        lambda seen: seen.time_to_first_token,
    ),
    _row(
        "time_per_output_token_seconds",
        "Histogram of time per output token in seconds.",
        lambda seen: seen.inter_token_latency,
        (),
        (0, 12),
    ),
    _row(
        "inter_token_latency_seconds",
        "Histogram of inter-token latency in seconds.",
        lambda seen: seen.inter_token_latency,
        (0, 10, 2),
    ),
    _row(
        "request_time_per_output_token_seconds",
        "Histogram of time_per_output_token_seconds per request.",
        lambda seen: seen.request_time_per_output_token,
        (0, 11),
    ),
    _row(
        "e2e_request_latency_seconds",
        "Histogram of e2e request latency in seconds.",
        lambda seen: seen.end_to_end_latency,
    ),
    _row(
        "request_queue_time_seconds",
        "Histogram of time spent in WAITING phase for request.",
        lambda seen: seen.queue_time,
    ),
    _row(
        "request_inference_time_seconds",
        "Histogram of time spent in RUNNING phase for request.",
        lambda seen: seen.inference_time,
    ),
    _row(
        "request_prefill_time_seconds",
        "Histogram of time spent in PREFILL phase for request.",
        lambda seen: seen.prefill_time,
    ),
    _row(
        "request_decode_time_seconds",
        "Histogram of time spent in DECODE phase for request.",
        lambda seen: seen.decode_time,
    ),
    _row(
        "request_num_preemptions",
        "Histogram of the number of times a request was preempted.",
        lambda seen: seen.request_preemptions,
        (0, 30),
    ),
    _row(
        "request_prefill_kv_computed_tokens",
        "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
        lambda seen: seen.request_computed_tokens,
        (0, 13),
    ),
)
