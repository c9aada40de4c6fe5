"""What a sidecar would know of the engine, without the text: the same blind spots, none of the reading.

The text is in ``vllm_v0.py`` and ``vllm_v1.py``; a test reads it and finds these samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drill.expose.cache_config import GIB, NONE, cache_config
from drill.expose.front_end import FrontEnd
from drill.expose.observed import Observed
from drill.expose.observed_v0 import ObservedV0
from drill.expose.observed_v1 import ObservedV1
from drill.expose.v1_rows import in_lookup_units, usage_ratio
from drill.expose.vllm_v0 import usage_ratio as usage_ratio_v0
from exporter.sample import EngineSample, RankSample

_KIND = "vllm"
_QUEUE_LIMITS = ("max_num_queued_reqs", "max_num_queued_tokens")
Fields = dict[str, Any]


def sample_v0(seen: ObservedV0, engine: str, at: float, read_seconds: float = 0.0) -> EngineSample:
    """One read of a V0 engine that began at ``at`` (seconds since the epoch)."""
    config, served = seen.config, seen.served
    gauges = seen.gauges
    fields = _common(seen)
    fields["swapped"] = float(gauges.swapped)
    fields["kv_usage_ratio"] = usage_ratio_v0(gauges.used_blocks, gauges.usable_blocks)
    fields["blocks"] = fields["pool_blocks"] = float(config.total_blocks)
    fields["swap_tier_usage_ratio"] = usage_ratio_v0(gauges.host_used_blocks, gauges.host_blocks)
    fields["swap_tier_blocks"] = float(config.host_blocks)
    fields["swap_tier_bytes"] = float(config.swap_bytes_gpu) if config.host_blocks else 0.0
    if config.host_blocks:
        fields["swap_mode"] = "swap"
    if config.prefix_caching:
        fields["prefix_hit_ratio"] = seen.prefix_hit_ratio
    if seen.finished:
        fields["finished_total"] = (("length", float(seen.finished)),)
    rank = RankSample(at, "0", served.model_name, generation="v0", **fields)
    known = _known(cache_config(config, served.release))
    return EngineSample(at, engine, _KIND, (rank,), read_seconds=read_seconds, generation="v0", config=known)


def sample_v1(
    ranks: Sequence[ObservedV1], front: FrontEnd, engine: str, at: float, read_seconds: float = 0.0
) -> EngineSample:
    """One read of a V1 server that began at ``at`` (seconds since the epoch). Arguments as ``vllm_v1.page``'s."""
    served = ranks[0].served
    started_at = None if front.several_servers else front.started_at
    http_ok = float(front.answers) if front.first_at is not None else None
    read = tuple(
        RankSample(
            at,
            str(number),
            served.model_name,
            generation="v1",
            started_at=started_at,
            http_ok_total=http_ok if len(ranks) == 1 else None,
            **_v1_fields(seen),
        )
        for number, seen in enumerate(ranks)
    )
    rejections: tuple[tuple[str, float], ...] = ()
    if served.release.in_range((0, 32), None):
        rejections = tuple((limit, 0.0) for limit in _QUEUE_LIMITS)
    return EngineSample(
        at,
        engine,
        _KIND,
        read,
        read_seconds=read_seconds,
        generation="v1",
        started_at=started_at,
        http_ok_total=http_ok,
        admission_rejections_total=rejections,
        config=_known(cache_config(served.config, served.release, len(ranks))),
    )


def _common(seen: Observed) -> Fields:
    size = float(seen.config.block_tokens)
    return {
        "running": float(seen.gauges.running),
        "waiting": float(seen.gauges.waiting),
        "block_tokens": size,
        "block_group_tokens": (size,),
        "preemptions_total": float(seen.preemptions),
        "prompt_tokens_total": float(seen.prompt_tokens),
        "generation_tokens_total": float(seen.generation_tokens),
        "time_to_first_token": seen.time_to_first_token.histogram(),
        "inter_token_latency": seen.inter_token_latency.histogram(),
        "end_to_end_latency": seen.end_to_end_latency.histogram(),
        "queue_time": seen.queue_time.histogram(),
        "prefill_time": seen.prefill_time.histogram(),
        "request_prompt_tokens": seen.request_prompt_tokens.histogram(),
        "request_generation_tokens": seen.request_generation_tokens.histogram(),
        "iteration_tokens": seen.iteration_tokens.histogram(),
    }


def _v1_fields(seen: ObservedV1) -> Fields:
    release, gauges = seen.served.release, seen.gauges
    fields = _common(seen) | {
        "kv_usage_ratio": usage_ratio(seen),
        "prefix_queries_total": float(in_lookup_units(seen, seen.prefix_queries)),
        "prefix_hits_total": float(in_lookup_units(seen, seen.prefix_hits)),
    }
    reasons = ["abort", "length", "stop"]
    if release.in_range((0, 13), None):
        reasons.insert(1, "error")
    if release.in_range((0, 17), None):
        reasons.insert(-1, "repetition")
    fields["finished_total"] = tuple(
        (reason, float(seen.finished if reason == "length" else 0)) for reason in reasons
    )
    if release.in_range((0, 11), None):
        fields["request_time_per_output_token"] = seen.request_time_per_output_token.histogram()
    if release.in_range((0, 11, 2), None):
        fields["external_queries_total"] = float(seen.external_queries)
    if release.in_range((0, 16), None):
        found = seen.prompt_local_tokens + seen.prompt_external_tokens
        fields["prompt_tokens_computed_total"] = float(seen.prompt_tokens - found)
    if release.in_range((0, 20), None):
        fields["waiting_by_reason"] = (
            ("capacity", float(gauges.waiting - gauges.deferred)),
            ("deferred", float(gauges.deferred)),
        )
    if release.in_range((0, 30), None):
        fields["request_preemptions"] = seen.request_preemptions.histogram()
    return fields | _pool(seen) | _tier(seen)


def _pool(seen: ObservedV1) -> Fields:
    """Blocks of one rank. The block that V1 keeps is known to be kept since 0.10.2; up to 0.8 none was told."""
    config, release = seen.config, seen.served.release
    fields: Fields = {}
    if release.in_range((0, 9), None):
        usable = config.total_blocks - 1 if release.in_range((0, 10, 2), None) else config.total_blocks
        fields |= {"blocks": float(usable), "pool_blocks": float(config.total_blocks)}
        if release.in_range((0, 24), None):
            fields["kv_capacity_tokens"] = float(usable * config.block_tokens)
    return fields


def _tier(seen: ObservedV1) -> Fields:
    """Bytes are counted since 0.16, each transfer as it ends."""
    config, release = seen.config, seen.served.release
    fields: Fields = {}
    if not config.offload_bytes or not release.in_range((0, 11, 2), None):
        return fields
    fields["swap_mode"] = "offload"
    fields["swap_tier_bytes"] = float(str(config.offload_bytes / GIB)) * GIB
    if release.in_range((0, 16), None):
        fields["swap_in_bytes_total"] = seen.loads.bytes_total
        fields["swap_out_bytes_total"] = seen.stores.bytes_total
    return fields


def _known(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in labels.items() if value not in ("", NONE)))
