"""All phenomena and all signals: the files of ``derive/`` and those that speak of the sidecar itself."""

from __future__ import annotations

from typing import Any

from exporter import own_signals, recorder_signals, sampler_signals, source_signals
from exporter.derive import (
    aborts,
    blocks,
    fragmentation,
    headroom,
    inventory,
    latency,
    pingpong,
    preemption,
    prefill,
    ranks,
    stalls,
    swap,
    traffic,
)
from exporter.derive.phenomenon import Phenomenon
from exporter.gpu_sample import GpuSample
from exporter.join import Join
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

GPU_PHENOMENA: tuple[Phenomenon[Window[GpuSample], Any], ...] = (inventory.INVENTORY,)
"""Derived for each GPU."""

JOIN_PHENOMENA: tuple[Phenomenon[Join, Any], ...] = (inventory.JOIN,)
"""Derived for each engine together with its GPUs."""

PHENOMENA: tuple[Phenomenon[Any, Any], ...] = (
    *RANK_PHENOMENA,
    *ENGINE_PHENOMENA,
    *GPU_PHENOMENA,
    *JOIN_PHENOMENA,
)

SIGNALS: tuple[Signal, ...] = (
    *(signal for phenomenon in PHENOMENA for signal in phenomenon.signals),
    *source_signals.SIGNALS,
    *sampler_signals.SIGNALS,
    *own_signals.SIGNALS,
    *recorder_signals.SIGNALS,
)
