"""Trials of ``alerts/pack/swap.py``."""

from __future__ import annotations

from exporter.derive.preemption import PREEMPTION_RATE, THRASHING
from exporter.derive.ranks import ENGINE_INFO
from exporter.derive.swap import SWAP_BYTES_RATE, SWAP_TIER_ENABLED, SWAP_TIER_USED, SWAPPED
from tests.alerts.rules.trials import Fires, Quiet, Told

_V0, _V1 = (
    Told(ENGINE_INFO, 1, 1, (("engine_kind", "vllm"), ("generation", generation)))
    for generation in ("v0", "v1")
)
_IN, _OUT = ((("direction", direction),) for direction in ("in", "out"))

TRIALS = (
    Fires(
        "KvSwapEnabled",
        "a V0 engine with swap space",
        (Told(SWAP_TIER_ENABLED, 0, 1), _V0),
        "a may swap sequences to the host",
    ),
    Quiet("KvSwapEnabled", "V1 offloads on purpose", (Told(SWAP_TIER_ENABLED, 0, 1), _V1)),
    Fires(
        "KvSequencesSwapped",
        "sequences on the host",
        (Told(SWAPPED, 0, 7),),
        "a: 7 sequences are swapped out",
    ),
    Quiet("KvSequencesSwapped", "a pool that could, and doesn't", (Told(SWAPPED, 0, 0), _V0)),
    Fires(
        "KvOffloadThrash",
        "what is thrown out comes back",
        (Told(THRASHING, 0, 1), Told(PREEMPTION_RATE, 0, 0.8), Told(SWAP_BYTES_RATE, 0, 2e9, _IN)),
        "a loads sequences from the tier below and throws them out again",
    ),
    Quiet(
        "KvOffloadThrash",
        "stores alone",
        (
            Told(THRASHING, 0, 1),
            Told(PREEMPTION_RATE, 0, 0.8),
            Told(SWAP_BYTES_RATE, 0, 0, _IN),
            Told(SWAP_BYTES_RATE, 0, 2e9, _OUT),
        ),
    ),
    Fires(
        "SwapPoolFilling",
        "V0's pool on the host is nearly full",
        (Told(SWAP_TIER_USED, 0.1, 0.93), _V0),
        "a: swap pool 93% full, and the engine dies when it is",
    ),
    Quiet("SwapPoolFilling", "a full tier is normal for V1", (Told(SWAP_TIER_USED, 0.1, 1.0), _V1)),
)
