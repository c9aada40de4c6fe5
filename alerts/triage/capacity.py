"""How many requests at a time an engine carries to their end: what its gateway's limit should be."""

from __future__ import annotations

import math

from alerts.thresholds import Thresholds
from alerts.triage.known import Known
from exporter.derive.blocks import KV_USAGE, block_slots
from exporter.derive.latency import TOKEN_INTERVAL
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING
from exporter.derive.stalls import TOKEN_AGE
from exporter.derive.swap import SWAPPED
from exporter.derive.traffic import SEQUENCES
from exporter.sample import RankSample

SHARE = 0.8
"""Of what fits: lengths vary, and the gateway lets in before the engine knows."""
TELLING_USAGE = 0.5
"""Below it, what runs says little of how many would fit."""


def fitting(sample: RankSample | None, known: Known, thresholds: Thresholds) -> int | None:
    """Sequences of a rank: an estimate, None where too little is known.

    The fewer of two: pool tokens over what a finished request held at its end (mean prompt and mean answer, which is
    more than it held on average), and what runs over the share of the pool that it takes, where that is half at least.
    ``SHARE`` of it, 1 at least, and no fewer than run well now: prompts that begin alike share blocks, so that more
    may fit than lengths say.
    """
    found = []
    held = None if sample is None else _held_at_end(sample)
    slots = None if sample is None else block_slots(sample)
    if sample is not None and sample.blocks and slots and held:
        found.append(sample.blocks * slots / held)
    usage, running = known.value(KV_USAGE), known.value(SEQUENCES, "running")
    if usage is not None and usage >= TELLING_USAGE and running:
        found.append(running / usage)
    if not found:
        return None
    floor = int(running) if running and runs_well(known, thresholds) else 1
    return max(1, floor, math.floor(SHARE * min(found)))


def runs_well(known: Known, thresholds: Thresholds) -> bool:
    """Whether what runs on a rank goes on running: tokens come, nobody is swapped, nobody waits or is thrown out.

    Either of the last two will do. Preemptions are counted over half a minute: where nobody waits any more, who was
    thrown out is back.
    """
    waiting, preempted = known.value(SEQUENCES, "waiting"), known.value(PREEMPTION_RATE)
    calm = preempted is not None and preempted <= thresholds.preemptions_per_second
    stalled = (known.value(TOKEN_AGE) or 0.0) >= thresholds.decode_stall_seconds
    crawls = (known.value(TOKEN_INTERVAL) or 0.0) > thresholds.token_interval_seconds
    swapped = (known.value(SWAPPED) or 0.0) > thresholds.swapped_sequences
    return (waiting == 0 or calm) and not (known.value(THRASHING) or stalled or crawls or swapped)


def _held_at_end(sample: RankSample) -> float | None:
    prompts, answers = sample.request_prompt_tokens, sample.request_generation_tokens
    if prompts is None or answers is None or prompts.mean is None or answers.mean is None:
        return None
    return prompts.mean + answers.mean
