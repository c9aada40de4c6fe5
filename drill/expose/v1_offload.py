"""Rows of vLLM V1's tier below the GPU (its OffloadingConnector): there only where the engine has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drill.expose.buckets import Buckets
from drill.expose.observed_v1 import ObservedV1, Transfers
from drill.expose.rows import Row
from drill.expose.text import Told

_V1 = Row[ObservedV1]
_IN, _OUT = (("transfer_type", "CPU_to_GPU"),), (("transfer_type", "GPU_to_CPU"),)
_SPLIT = (0, 24)
"""Since then loads and stores have counters of their own, beside the old ones."""

Ways = Callable[[ObservedV1], Transfers]
Part = Callable[[Transfers], float | Buckets]


def _both(part: Part) -> Callable[[ObservedV1], Sequence[Told]]:
    return lambda seen: (Told(part(seen.loads), _IN), Told(part(seen.stores), _OUT))


def _once_seen(way: Ways, part: Part) -> Callable[[ObservedV1], Sequence[Told]]:
    """Not there before the first transfer."""

    def read(seen: ObservedV1) -> Sequence[Told]:
        transfers = way(seen)
        if transfers.first_at is None:
            return ()
        return (Told(part(transfers), (), seen.served.epoch + transfers.first_at),)

    return read


def _pinned(*ways: Ways) -> Callable[[ObservedV1], Sequence[Told]]:
    def read(seen: ObservedV1) -> Sequence[Told]:
        if seen.loads.first_at is None and seen.stores.first_at is None:
            return ()
        blocks = int(seen.config.offload_bytes / seen.config.block_bytes)
        return (Told(sum(way(seen).pending_blocks for way in ways) / blocks),)

    return read


def _never(seen: ObservedV1) -> Sequence[Told]:
    """Of what the model has no time for, or never fails at: as before the first observation."""
    del seen
    return ()


def _loads(seen: ObservedV1) -> Transfers:
    return seen.loads


def _stores(seen: ObservedV1) -> Transfers:
    return seen.stores


OFFLOAD_ROWS = (
    _V1(
        "kv_offload_total_bytes_total",
        "counter",
        "Number of bytes offloaded by KV connector",
        _both(lambda way: way.bytes_total),
        (0, 16),
    ),
    _V1(
        "kv_offload_total_time_total",
        "counter",
        "Total time measured by all KV offloading operations",
        _both(lambda way: way.seconds_total),
        (0, 16),
    ),
    _V1(
        "kv_offload_size",
        "histogram",
        "Histogram of KV offload transfer size, in bytes.",
        _both(lambda way: way.sizes),
        (0, 16),
    ),
    _V1(
        "kv_offload_cpu_cache_usage_perc",
        "gauge",
        "Fraction of CPU KV-cache space currently pinned by active transfers (0.0 = idle, 1.0 = saturated). Sustained "
        "high values indicate transfers (stores or promotions) may be dropped due to insufficient capacity.",
        _pinned(_loads, _stores),
        _SPLIT,
    ),
    _V1(
        "kv_offload_cpu_cache_write_usage_perc",
        "gauge",
        "Fraction of CPU KV-cache space currently pinned by in-flight stores that have not yet completed (0.0 = idle, "
        "1.0 = saturated).",
        _pinned(_stores),
        (0, 26),
    ),
    _V1(
        "kv_offload_cpu_cache_read_usage_perc",
        "gauge",
        "Fraction of CPU KV-cache space currently pinned by in-flight loads that have not yet completed (0.0 = idle, "
        "1.0 = saturated).",
        _pinned(_loads),
        (0, 26),
    ),
    _V1(
        "kv_offload_cpu_allocation_size",
        "histogram",
        "Histogram of the number of CPU chunks requested by each KV offload prepare_store call.",
        _once_seen(_stores, lambda way: way.chunks),
        (0, 26),
    ),
    _V1(
        "kv_offload_load_bytes_total",
        "counter",
        "Total bytes loaded from offload storage to GPU.",
        _once_seen(_loads, lambda way: way.bytes_total),
        _SPLIT,
    ),
    _V1(
        "kv_offload_load_time_total",
        "counter",
        "Total load time from offload storage to GPU, in seconds.",
        _once_seen(_loads, lambda way: way.seconds_total),
        _SPLIT,
    ),
    _V1(
        "kv_offload_load_size",
        "histogram",
        "Histogram of KV offload load operation size, in bytes.",
        _once_seen(_loads, lambda way: way.sizes),
        _SPLIT,
    ),
    _V1(
        "kv_offload_store_bytes_total",
        "counter",
        "Total bytes stored from GPU to offload storage.",
        _once_seen(_stores, lambda way: way.bytes_total),
        _SPLIT,
    ),
    _V1(
        "kv_offload_store_time_total",
        "counter",
        "Total store time from GPU to offload storage, in seconds.",
        _once_seen(_stores, lambda way: way.seconds_total),
        _SPLIT,
    ),
    _V1(
        "kv_offload_store_size",
        "histogram",
        "Histogram of KV offload store operation size, in bytes.",
        _once_seen(_stores, lambda way: way.sizes),
        _SPLIT,
    ),
    _V1(
        "kv_offload_lookup_sync_delay_seconds",
        "histogram",
        "Histogram of the time spent in a single offload lookup call, in seconds.",
        _never,
        (0, 26),
    ),
    _V1(
        "kv_offload_lookup_async_delay_seconds",
        "histogram",
        "Histogram of time between a request's offload lookup first deferring and the following lookup resolving, "
        "or request finish, in seconds.",
        _never,
        (0, 26),
    ),
    _V1(
        "kv_offload_allocation_failure_total",
        "counter",
        "Number of KV offload store allocation attempts that failed.",
        _never,
        (0, 26),
    ),
)
FETCH_ROW = _V1(
    "num_requests_kv_fetch_by_stage",
    "gauge",
    "Number of waiting requests by async KV load stage. Stage labels: 'waiting_to_start' = needs an async KV load that "
    "has not started; 'in_progress' = load started and not yet reported finished; 'completed_waiting' = load finished, "
    "request not running yet.",
    lambda seen: tuple(
        Told(float(count), (("stage", stage),))
        for stage, count in (
            ("waiting_to_start", 0),
            ("in_progress", seen.gauges.deferred),
            ("completed_waiting", 0),
        )
    ),
    (0, 32),
)
