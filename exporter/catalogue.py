"""All phenomena and all signals: the files of ``derive/`` and those that speak of the sidecar itself."""

from __future__ import annotations

from typing import Any

from exporter import own_signals, recorder_signals, source_signals
from exporter.derive import (
    aborts,
    blocks,
    fragmentation,
    headroom,
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
from exporter.sample import EngineSample, RankSample
from exporter.signal import Signal

RANK_PHENOMENA: tuple[Phenomenon[RankSample, Any], ...] = (
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

ENGINE_PHENOMENA: tuple[Phenomenon[EngineSample, Any], ...] = (
    ranks.RANKS,
    traffic.ADMISSION,
    aborts.ABORTS,
    latency.SLO,
)
"""Derived for each engine, over its front end and all its ranks."""

SIGNALS: tuple[Signal, ...] = (
    *(signal for phenomenon in RANK_PHENOMENA for signal in phenomenon.signals),
    *(signal for phenomenon in ENGINE_PHENOMENA for signal in phenomenon.signals),
    *source_signals.SIGNALS,
    *own_signals.SIGNALS,
    *recorder_signals.SIGNALS,
)
