"""All phenomena and all signals: the files of ``derive/`` and those that speak of the sidecar itself."""

from __future__ import annotations

from typing import Any

from exporter import own_signals, recorder_signals, sampler_signals, source_signals
from exporter.derive import (
    aborts,
    amplification,
    attribution,
    blocks,
    collectives,
    fragmentation,
    gateway,
    gateway_keys,
    gpu_health,
    gpu_load,
    gpu_memory,
    gpu_processes,
    headroom,
    inventory,
    kv_events,
    latency,
    nvlink,
    orphans,
    pcie,
    pingpong,
    preemption,
    prefill,
    probe,
    ranks,
    stalls,
    starvation,
    swap,
    traffic,
)
from exporter.derive.phenomenon import Phenomenon
from exporter.gateway_join import GatewayJoin
from exporter.gateway_sample import GatewaySample
from exporter.gpu_sample import GpuSample
from exporter.join import Join
from exporter.kv_events_sample import KvEventsSample
from exporter.probe_sample import Probed
from exporter.sample import EngineSample, RankSample
from exporter.signal import Signal
from exporter.window import Window

RANK_PHENOMENA: tuple[Phenomenon[Window[RankSample], Any], ...] = (
    traffic.GAUGES,
    traffic.TOTALS,
    blocks.BLOCKS,
    blocks.LEAK,
    fragmentation.FRAGMENTATION,
    headroom.HEADROOM_PHENOMENON,
    swap.TIER,
    swap.RATES,
    swap.TOTALS,
    preemption.COST,
    preemption.THRASH,
    pingpong.PINGPONG_PHENOMENON,
    latency.LATENCY,
    stalls.STALLS,
    prefill.PREFILL,
)
"""Derived for each data-parallel rank."""

ENGINE_PHENOMENA: tuple[Phenomenon[Window[EngineSample], Any], ...] = (
    ranks.RANKS,
    traffic.ADMISSION,
    aborts.ABORTS,
    latency.SLO,
)
"""Derived for each engine, over its front end and all its ranks."""

GPU_PHENOMENA: tuple[Phenomenon[Window[GpuSample], Any], ...] = (
    inventory.INVENTORY,
    gpu_memory.MEMORY,
    gpu_processes.PROCESSES,
    gpu_load.LOAD,
    pcie.PCIE,
    nvlink.NVLINK,
    gpu_health.HEALTH,
    gpu_health.ERRORS,
)
"""Derived for each GPU."""

JOIN_PHENOMENA: tuple[Phenomenon[Join, Any], ...] = (
    inventory.JOIN,
    attribution.ATTRIBUTION,
    starvation.STARVATION,
    collectives.COLLECTIVES,
)
"""Derived for each engine together with its GPUs."""

KV_EVENTS_PHENOMENA: tuple[Phenomenon[Window[KvEventsSample], Any], ...] = (kv_events.KV_EVENTS,)
"""Derived for each data-parallel rank whose KV events are heard."""
GATEWAY_PHENOMENA: tuple[Phenomenon[Window[GatewaySample], Any], ...] = (
    gateway.GAUGES,
    gateway.TOTALS,
    amplification.AMPLIFICATION_PHENOMENON,
    gateway_keys.KEYS,
)
"""Derived for each gateway."""

GATEWAY_JOIN_PHENOMENA: tuple[Phenomenon[GatewayJoin, Any], ...] = (orphans.ORPHANS_PHENOMENON,)
"""Derived for gateways together with the engines behind them."""

PROBE_PHENOMENA: tuple[Phenomenon[Probed, Any], ...] = (
    fragmentation.PROBED_FRAGMENTATION,
    pingpong.PROBED_PINGPONG,
    probe.PROBE,
)
"""Derived for each data-parallel rank whose engine has the probe; what others declare too goes before theirs."""

PHENOMENA: tuple[Phenomenon[Any, Any], ...] = (
    *RANK_PHENOMENA,
    *ENGINE_PHENOMENA,
    *GPU_PHENOMENA,
    *JOIN_PHENOMENA,
    *KV_EVENTS_PHENOMENA,
    *PROBE_PHENOMENA,
    *GATEWAY_PHENOMENA,
    *GATEWAY_JOIN_PHENOMENA,
)

DERIVED_SIGNALS: tuple[Signal, ...] = tuple(
    dict.fromkeys(signal for phenomenon in PHENOMENA for signal in phenomenon.signals)
)

SIGNALS: tuple[Signal, ...] = (
    *DERIVED_SIGNALS,
    *source_signals.SIGNALS,
    *sampler_signals.SIGNALS,
    *own_signals.SIGNALS,
    *recorder_signals.SIGNALS,
)
