"""Engines but vLLM: what is read of them (``exporter/dialects``), and the names that came and went."""

from __future__ import annotations

import re
from collections.abc import Iterable

from alerts.lint.facts.metric import PARTS, TOTAL, Exporter, Kind, Metric, Scale, release
from exporter.dialects import llamacpp, names, sglang_names, tgi, trtllm

_LATER_BUCKETS = {
    "time_to_first_token_seconds": 2560.0,
    "time_per_output_token_seconds": 80.0,
    "e2e_request_latency_seconds": 7680.0,
    "request_queue_time_seconds": 7680.0,
}
"""TensorRT-LLM's, where they aren't set: those of vLLM from 0.8.4 on."""


def _of_tables(*tables: names.Table, total: str = TOTAL, more: Iterable[Metric] = ()) -> dict[str, Metric]:
    """The metrics that tables of dialects know; ``total`` is what the engine puts behind its counters."""
    found: dict[str, Metric] = {}
    for table in tables:
        for spellings in table.by_stem.values():
            for name in spellings:
                metric = _metric(name, total)
                found.setdefault(metric.name, metric)
    return {**found, **{metric.name: metric for metric in more}}


def _metric(name: names.Name, total: str) -> Metric:
    if name.kind is names.Kind.HISTOGRAM:
        return Metric(name.stem, Kind.HISTOGRAM)
    if name.kind is names.Kind.COUNTER:
        return Metric(name.stem if name.stem.endswith(PARTS) else name.stem + total, Kind.COUNTER)
    return Metric(name.stem, Kind.GAUGE, Scale.RATIO if name.kind is names.Kind.RATIO else Scale.OPEN)


SGLANG = Exporter(
    "sglang",
    "SGLang",
    sglang_names.OF_A_RANK.prefix,
    "sglang:",
    _of_tables(
        sglang_names.OF_A_RANK,
        sglang_names.OF_THE_FRONT,
        more=(
            Metric("num_retracted_requests_total", Kind.COUNTER, born_late=True),
            Metric(
                "num_retracted_reqs",
                Kind.GAUGE,
                trap="it is that of the last batch, and begins anew at each log line:"
                " rate(sglang:num_retracted_requests_total[5m]) counts",
            ),
            Metric(
                "avg_request_queue_latency",
                Kind.GAUGE,
                last=release("0.4.9"),
                use="sglang:queue_time_seconds, a histogram",
            ),
            Metric(
                "num_prefill_infight_queue_reqs",
                Kind.GAUGE,
                last=release("0.4.9"),
                use="sglang:num_prefill_inflight_queue_reqs",
            ),
            Metric(
                "func_latency_seconds",
                Kind.HISTOGRAM,
                last=release("0.4.9"),
                use="sglang:per_stage_req_latency_seconds",
            ),
            Metric(
                "num_prefill_prealloc_queue_reqs",
                Kind.GAUGE,
                last=release("0.5.10"),
                use="sglang:num_prefill_bootstrap_queue_reqs",
            ),
            Metric(
                "num_retractions",
                Kind.HISTOGRAM,
                last=release("0.5.10"),
                use="sglang:num_retracted_requests_total",
            ),
            Metric("token_usage", Kind.GAUGE, Scale.RATIO),
            Metric("swa_token_usage", Kind.GAUGE, Scale.RATIO),
            Metric("mamba_usage", Kind.GAUGE, Scale.RATIO),
            Metric("cache_hit_rate", Kind.GAUGE, Scale.RATIO),
        ),
    ),
    {},
    newest="0.5.23",
)
TRTLLM = Exporter(
    "trtllm",
    "TensorRT-LLM",
    trtllm.SERVE.prefix,
    "trtllm_",
    _of_tables(
        trtllm.SERVE,
        more=(
            *(Metric(name, Kind.HISTOGRAM, tops=(((), top),)) for name, top in _LATER_BUCKETS.items()),
            Metric("request_error_total", Kind.COUNTER, born_late=True),
        ),
    ),
    {
        "num_preemptions_total": "TensorRT-LLM counts none: trtllm_num_paused_requests tells who is put aside",
    },
)
TGI = Exporter(
    "tgi",
    "Text Generation Inference",
    tgi.TABLE.prefix,
    "tgi_",
    _of_tables(tgi.TABLE, total="", more=(Metric("request_failure", Kind.COUNTER, born_late=True),)),
    {},
)
LLAMACPP = Exporter(
    "llamacpp",
    "llama.cpp",
    llamacpp.TABLE.prefix,
    "llamacpp:",
    _of_tables(
        llamacpp.TABLE,
        more=tuple(
            Metric(
                name,
                Kind.GAUGE,
                Scale.RATIO if name.endswith("ratio") else Scale.OPEN,
                gone=True,
                use="nothing has taken its place (ggml-org/llama.cpp#13660); llamacpp:requests_deferred tells who"
                " waits",
            )
            for name in ("kv_cache_usage_ratio", "kv_cache_tokens")
        ),
    ),
    {},
)
DYNAMO = Exporter(
    "dynamo",
    "Dynamo",
    re.compile(r"^dynamo_component_"),
    "dynamo_component_",
    {
        "gpu_cache_usage_percent": Metric("gpu_cache_usage_percent", Kind.GAUGE, Scale.RATIO),
        "inflight_requests": Metric("inflight_requests", Kind.GAUGE),
    },
    {
        "kvstats_gpu_cache_usage_percent": "dynamo_component_gpu_cache_usage_percent",
        "kvstats_total_blocks": "dynamo_component_total_blocks",
    },
)
INFERENCE_EXTENSION = Exporter(
    "inference_extension",
    "the Gateway API inference extension",
    re.compile(r"^inference_model_"),
    "inference_model_",
    {},
    {
        stem: f"inference_objective_{stem}, and llm_d_router_epp_* in newer releases of llm-d"
        for stem in (
            "request_total",
            "request_error_total",
            *(f"request_duration_seconds{part}" for part in PARTS),
        )
    },
)
ENVOY = Exporter(
    "envoy",
    "Envoy",
    re.compile(r"^envoy_"),
    "envoy_",
    {},
    {
        f"cluster_circuit_breakers_{priority}_{limit}": "limits are in Envoy's configuration alone;"
        f" envoy_cluster_circuit_breakers_{priority}_{limit.removesuffix('_max')}_open says that one is reached"
        for priority in ("default", "high")
        for limit in ("rq_pending_max", "rq_max", "cx_max", "rq_retry_max")
    },
)
DIALECTS = (SGLANG, TRTLLM, TGI, LLAMACPP, DYNAMO, INFERENCE_EXTENSION, ENVOY)
