"""Swapping and offloading: on where it should be off, at work, and running out of room."""

from __future__ import annotations

from alerts.alert import Alert, Severity
from alerts.causes import Cause
from alerts.conditions import All, Compare, Reading
from alerts.pack.explaining import KEPT_SECONDS
from alerts.pack.wording import AN_ENGINE, PERCENT, either
from alerts.recording_ill import PREEMPTS, SWAPS, THRASHES
from exporter.derive.ranks import ENGINE_INFO
from exporter.derive.swap import SWAP_BYTES_RATE, SWAP_TIER_ENABLED, SWAP_TIER_USED

KV_SWAP_ENABLED = Alert(
    "KvSwapEnabled",
    Severity.INFO,
    Cause.SWAP_THRASH,
    All(
        Compare(Reading(SWAP_TIER_ENABLED), ">=", 1.0),
        Compare(Reading(ENGINE_INFO, (("generation", "v0"),)), ">=", 1.0),
    ),
    "{{ $labels.engine }} may swap sequences to the host",
    "Swap space is set up on an engine that is to recompute what it preempts. It takes a drain and a restart to undo.",
    for_seconds=300,
)
KV_SEQUENCES_SWAPPED = Alert(
    "KvSequencesSwapped",
    Severity.PAGE,
    Cause.SWAP_THRASH,
    SWAPS,
    "{{ $labels.engine }}: "
    + either("eq $value 1.0", "a sequence is", '{{ $value | printf "%.0f" }} sequences are')
    + " swapped out",
    "The pool ran dry and sequences were moved to the host: they make no token until they are back, and nobody new is"
    " let in meanwhile.",
    for_seconds=15,
    keep_firing_seconds=KEPT_SECONDS,
)
KV_OFFLOAD_THRASH = Alert(
    "KvOffloadThrash",
    Severity.PAGE,
    Cause.OFFLOAD_THRASH,
    All(
        THRASHES,
        PREEMPTS,
        Compare(Reading(SWAP_BYTES_RATE, (("direction", "in"),)), ">", 0.0),
    ),
    "{{ $labels.engine }} loads sequences from the tier below and throws them out again",
    "The engine thrashes, and what it throws out comes back over PCIe. Stores alone are normal: the tier is written"
    " through.",
    for_seconds=15,
    keep_firing_seconds=KEPT_SECONDS,
)
SWAP_POOL_FILLING = Alert(
    "SwapPoolFilling",
    Severity.PAGE,
    Cause.SWAP_THRASH,
    All(
        Compare(Reading(SWAP_TIER_USED), ">", "swap_tier_used_ratio"),
        Compare(Reading(ENGINE_INFO, (("generation", "v0"),)), ">=", 1.0),
    ),
    f"{AN_ENGINE}: swap pool {PERCENT} full, and the engine dies when it is",
    "vLLM's V0 engine ends with an error as soon as it has to swap and the pool on the host is full.",
    for_seconds=0,
)
SWAP = (KV_SWAP_ENABLED, KV_SEQUENCES_SWAPPED, KV_OFFLOAD_THRASH, SWAP_POOL_FILLING)
