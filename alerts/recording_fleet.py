"""What a fleet has and does as a whole, for boards: sums and worst cases of a cluster's ranks by model.

Ratios and quantiles are never summed or averaged: of usage the fullest rank is kept, and the blocks that usage is made
of, used and in all, are summed apart.
"""

from __future__ import annotations

from functools import partial

from alerts.conditions import Rendering
from alerts.pack.promql import by, gauge
from alerts.recording import Recording, RecordingGroup
from exporter.derive.blocks import KV_BLOCKS, KV_USAGE
from exporter.derive.headroom import HEADROOM
from exporter.derive.latency import TOKEN_INTERVAL, TPOT_P99, TTFT_P99
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING
from exporter.derive.ranks import ENGINE_INFO
from exporter.derive.swap import SWAP_BYTES_RATE
from exporter.derive.traffic import GENERATION_RATE, PROMPT_RATE, SEQUENCES
from exporter.signal import Signal

MODEL = ("model_name",)


def _of_ranks(signal: Signal, operation: str, rendering: Rendering) -> str:
    """Of each rank one value, however often it is scraped."""
    each = by(rendering, signal.label_names)
    one = f"max by ({each}) ({gauge(rendering, signal)})"
    return f"{operation} by ({by(rendering, (*MODEL, *signal.labels))}) ({one})"


def _fleet(signal: Signal, operation: str, meaning: str) -> Recording:
    return Recording(
        f"cluster_model:{signal.full_name}:{operation}",
        meaning,
        partial(_of_ranks, signal, operation),
        (*MODEL, *signal.labels),
    )


def _engines(rendering: Rendering) -> str:
    each = by(rendering, ENGINE_INFO.scope.labels)
    return f"count by ({by(rendering, ())}) (group by ({each}) ({gauge(rendering, ENGINE_INFO)}))"


ENGINES = Recording(
    f"cluster:{ENGINE_INFO.full_name}:count", "Engines that answer their sidecars.", _engines, ()
)
HELD = _fleet(SEQUENCES, "sum", "Sequences by state.")
TOKENS = _fleet(GENERATION_RATE, "sum", "Tokens generated a second.")
BLOCKS = _fleet(KV_BLOCKS, "sum", "KV blocks by state: used over total is the fleet's usage.")
FULLEST = _fleet(KV_USAGE, "max", "KV usage of the fullest rank.")
EMPTIEST = _fleet(KV_USAGE, "min", "KV usage of the emptiest rank.")
LEFT = _fleet(HEADROOM, "sum", "Tokens of KV that are left when all that runs is done.")
FLEET = RecordingGroup(
    (
        ENGINES,
        HELD,
        TOKENS,
        _fleet(PROMPT_RATE, "sum", "Prompt tokens taken in a second."),
        BLOCKS,
        FULLEST,
        EMPTIEST,
        LEFT,
        _fleet(PREEMPTION_RATE, "sum", "Preemptions a second."),
        _fleet(THRASHING, "sum", "Ranks that thrash."),
        _fleet(SWAP_BYTES_RATE, "sum", "Bytes a second of swapping and offloading, by direction."),
        _fleet(TOKEN_INTERVAL, "max", "Mean gap between tokens, of the slowest rank."),
        _fleet(TPOT_P99, "max", "p99 of the time between tokens, of the slowest rank."),
        _fleet(TTFT_P99, "max", "p99 of the time to the first token, of the slowest rank."),
    ),
    every_seconds=30,
)
