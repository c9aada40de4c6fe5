"""How many requests at a time an engine carries to their end: what its gateway's limit should be."""

from __future__ import annotations

import math

from alerts.triage.known import Known
from exporter.derive.blocks import KV_USAGE, block_slots
from exporter.derive.traffic import SEQUENCES
from exporter.sample import RankSample

SHARE = 0.8
"""Of what fits: lengths vary, and the gateway lets in before the engine knows."""
TELLING_USAGE = 0.5
"""Below it, what runs says little of how many would fit."""


def fitting(sample: RankSample | None, known: Known) -> int | None:
    """Sequences of a rank: an estimate, None where too little is known.

    The fewer of two: pool tokens over what a finished request held at its end (mean prompt and mean answer, which is
    more than it held on average), and what runs over the share of the pool that it takes, where that is half at least.
    ``SHARE`` of it, 1 at least.
    """
    found = []
    held = None if sample is None else _held_at_end(sample)
    slots = None if sample is None else block_slots(sample)
    if sample is not None and sample.blocks and slots and held:
        found.append(sample.blocks * slots / held)
    usage, running = known.value(KV_USAGE), known.value(SEQUENCES, "running")
    if usage is not None and usage >= TELLING_USAGE and running:
        found.append(running / usage)
    return max(1, math.floor(SHARE * min(found))) if found else None


def _held_at_end(sample: RankSample) -> float | None:
    prompts, answers = sample.request_prompt_tokens, sample.request_generation_tokens
    if prompts is None or answers is None or prompts.mean is None or answers.mean is None:
        return None
    return prompts.mean + answers.mean
